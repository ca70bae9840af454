"""The other oracle: PyPI's h2. One case a line in, one transcript a line out."""

import json
import sys

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def text(octets):
    return octets.decode("latin1") if isinstance(octets, bytes) else octets


def fields_of(headers):
    return [text(part) for name, value in headers for part in (name, value)]


def connection_of(sender, methods):
    config = h2.config.H2Configuration(
        client_side=sender == "server", header_encoding=None, normalize_inbound_headers=False
    )
    connection = h2.connection.H2Connection(config=config)
    settings = {
        h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 1000,
        h2.settings.SettingCodes.MAX_HEADER_LIST_SIZE: 65_536,
    }
    connection.local_settings = h2.settings.Settings(client=sender == "server", initial_values=settings)
    connection.initiate_connection()
    if sender == "server":
        for index, method in enumerate(methods):
            head = [(":method", method), (":scheme", "http"), (":authority", "a"), (":path", "/")]
            connection.send_headers(index * 2 + 1, head, end_stream=True)
    connection.data_to_send()
    return connection


def note(message_of, event):
    if isinstance(event, (h2.events.RequestReceived, h2.events.ResponseReceived, h2.events.InformationalResponseReceived)):
        message_of(event.stream_id)["heads"].append(fields_of(event.headers))
    elif isinstance(event, h2.events.DataReceived):
        message_of(event.stream_id)["data"] += text(bytes(event.data))
    elif isinstance(event, h2.events.TrailersReceived):
        message_of(event.stream_id)["trailers"] = fields_of(event.headers)
    elif isinstance(event, h2.events.StreamEnded):
        message_of(event.stream_id)["ended"] = True


def read_connection(case):
    messages = {}
    refusal = None

    def message_of(stream_id):
        return messages.setdefault(stream_id, {"heads": [], "data": "", "trailers": None, "ended": False})

    connection = connection_of(case["sender"], case["methods"])
    frames = [bytes.fromhex(frame) for frame in case["frames"]]
    if case["sender"] == "client":
        frames.insert(0, PREFACE)
    for frame in frames:
        try:
            for event in connection.receive_data(frame):
                note(message_of, event)
        except h2.exceptions.ProtocolError as error:
            refusal = type(error).__name__
            break
    return {"messages": messages, "refusal": refusal, "said": connection.data_to_send().hex()}


for line in sys.stdin:
    print(json.dumps(read_connection(json.loads(line))), flush=True)

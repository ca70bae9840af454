"""The client in Python; see ../README.md."""

import json
import sys
import threading

import grpc
from google.protobuf.wrappers_pb2 import BytesValue

MOST_MESSAGE_BYTES = 8 << 20
METADATA = (("echo-text", "some text"), ("echo-bin", b"\x00\xff\x80,\n"))


def message(text):
    return BytesValue(value=text.encode())


class Call:
    def __init__(self, channel):
        self.channel = channel
        self.replies = []
        self.code = 0
        self.message = ""
        self.initial = {}
        self.trailing = {}

    def method(self, kind, name):
        return getattr(self.channel, kind)(
            f"/tokensidecar.e2e.Echo/{name}",
            request_serializer=BytesValue.SerializeToString,
            response_deserializer=BytesValue.FromString,
        )

    def unary(self, name, text, timeout=None):
        try:
            reply, call = self.method("unary_unary", name).with_call(message(text), timeout=timeout, metadata=METADATA)
            self.replies.append(reply.value.decode())
            self.end(call)
        except grpc.RpcError as error:
            self.end(error)

    def read(self, call):
        """Reads replies to the end of the call."""
        try:
            for reply in call:
                self.replies.append(reply.value.decode())
        except grpc.RpcError:
            pass
        self.end(call)

    def end(self, call):
        self.code = call.code().value[0]
        self.message = call.details() or ""
        self.initial = readable(call.initial_metadata())
        self.trailing = readable(call.trailing_metadata())

    def once(self, text):
        self.unary("Once", text)

    def fail(self, code):
        self.unary("Fail", code)

    def own(self, authorization):
        global METADATA
        METADATA = (*METADATA, ("authorization", authorization))
        self.once("hello")

    def deadline(self, ms):
        self.once("connected")
        self.unary("Hang", "", timeout=int(ms) / 1000)

    def large(self, size):
        sent = "0123456789abcdef" * (int(size) // 16)
        self.unary("Once", sent)
        if self.replies:
            self.replies = [str(len(sent)) if self.replies == [sent] else "the reply differs"]

    def split(self, text):
        self.read(self.method("unary_stream", "Split")(message(text), metadata=METADATA))

    def join(self, text):
        words = iter([message(word) for word in text.split()])
        try:
            reply, call = self.method("stream_unary", "Join").with_call(words, metadata=METADATA)
            self.replies.append(reply.value.decode())
            self.end(call)
        except grpc.RpcError as error:
            self.end(error)

    def converse(self, _):
        """Sends each line of the input, and prints the reply before it reads another."""
        lines = (message(line.rstrip("\n")) for line in sys.stdin)
        call = self.method("stream_stream", "Converse")(lines, metadata=METADATA)
        try:
            for reply in call:
                self.replies.append(reply.value.decode())
                print(self.replies[-1], flush=True)
        except grpc.RpcError:
            pass
        self.end(call)

    def cancel(self, text):
        call = self.method("unary_stream", "Linger")(message(text), metadata=METADATA)
        self.replies.append(next(call).value.decode())
        call.cancel()
        self.read(call)

    def many(self, count):
        """Opens streams and ends none before a reply has come on each."""
        answered = threading.Event()

        def requests():
            yield message("one of many")
            answered.wait()

        method = self.method("stream_stream", "Converse")
        calls = [method(requests(), metadata=METADATA) for _ in range(int(count))]
        try:
            for call in calls:
                next(call)
        except grpc.RpcError:
            pass
        answered.set()
        for call in calls:
            self.read(call)
            if self.code != 0:
                return
        self.replies = [count]


def readable(metadata):
    """Has the values of binary metadata in hexadecimal."""
    return {name: value.hex() if name.endswith("-bin") else value for name, value in metadata or ()}


target, command, argument = sys.argv[1:]
options = [("grpc.max_receive_message_length", MOST_MESSAGE_BYTES)]
with grpc.insecure_channel(target, options=options) as channel:
    call = Call(channel)
    getattr(call, command)(argument)
answer = ("code", "message", "replies", "initial", "trailing")
print(json.dumps({name: getattr(call, name) for name in answer}))

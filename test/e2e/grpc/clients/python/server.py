"""The server in Python; see ../README.md."""

import argparse
import json
import sys
import threading
from concurrent import futures

import grpc
from google.protobuf.wrappers_pb2 import BytesValue

MOST_MESSAGE_BYTES = 8 << 20
MOST_CALLS = 100
FAILURE = "as asked for: 100 % ☂"


class Call:
    """A call as it is printed at its end."""

    def __init__(self, method, context):
        self.method = method
        self.context = context
        # Whoever ends it otherwise cancels it.
        self.status = "Canceled"
        self.over = threading.Event()
        self.received = context.invocation_metadata()
        if not context.add_callback(self.end):
            self.end()

    def values(self, name):
        return [value for key, value in self.received if key == name]

    def end(self):
        self.over.set()
        line = {"method": self.method, "authorization": self.values("authorization"), "status": self.status}
        with printing:
            print(json.dumps(line), flush=True)

    def abort(self, code, text):
        # As Go writes them.
        self.status = code.name.title().replace("_", "")
        self.context.abort(code, text)

    def admit(self):
        """Answers the metadata of a call that has the token."""
        authorization = self.values("authorization")
        if len(authorization) != 1 or not authorization[0].startswith(args.authorization) or revoked(authorization[0]):
            self.abort(grpc.StatusCode.UNAUTHENTICATED, "no authorization, or a wrong one")
        echoed = [(key, value) for key, value in self.received if key in ("echo-text", "echo-bin")]
        self.context.send_initial_metadata(echoed)
        self.context.set_trailing_metadata(echoed)


def revoked(authorization):
    global used
    with printing:
        was_used, used = used, used or authorization == args.revoked
    return authorization == args.revoked and was_used


def once(call, request):
    return request


def hang(call, request):
    call.over.wait()
    return request


def fail(call, request):
    number = int(request.value)
    call.abort(next(code for code in grpc.StatusCode if code.value[0] == number), FAILURE)


def split(call, request):
    for word in request.value.split():
        yield BytesValue(value=word)


def linger(call, request):
    yield request
    call.over.wait()


def join(call, requests):
    return BytesValue(value=b" ".join(request.value for request in requests))


def converse(call, requests):
    yield from requests


def served(name, kind, behave):
    def answer_one(request, context):
        call = Call(name, context)
        call.admit()
        reply = behave(call, request)
        if not call.over.is_set():
            call.status = "OK"
        return reply

    def answer_stream(request, context):
        call = Call(name, context)
        call.admit()
        yield from behave(call, request)
        if not call.over.is_set():
            call.status = "OK"

    return getattr(grpc, f"{kind}_rpc_method_handler")(
        answer_stream if kind.endswith("_stream") else answer_one,
        request_deserializer=BytesValue.FromString,
        response_serializer=BytesValue.SerializeToString,
    )


METHODS = {
    "Once": ("unary_unary", once),
    "Hang": ("unary_unary", hang),
    "Fail": ("unary_unary", fail),
    "Split": ("unary_stream", split),
    "Linger": ("unary_stream", linger),
    "Join": ("stream_unary", join),
    "Converse": ("stream_stream", converse),
}

parser = argparse.ArgumentParser()
for flag in ("authorization", "revoked", "cert", "key"):
    parser.add_argument(f"-{flag}", default="")
args = parser.parse_args()
printing = threading.Lock()
used = False

server = grpc.server(
    futures.ThreadPoolExecutor(max_workers=MOST_CALLS),
    options=[("grpc.max_receive_message_length", MOST_MESSAGE_BYTES), ("grpc.so_reuseport", 0)],
)
handlers = {name: served(name, kind, behave) for name, (kind, behave) in METHODS.items()}
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("tokensidecar.e2e.Echo", handlers),))
if args.cert:
    with open(args.key, "rb") as key, open(args.cert, "rb") as certificate:
        credentials = grpc.ssl_server_credentials([(key.read(), certificate.read())])
    port = server.add_secure_port("127.0.0.1:0", credentials)
else:
    port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(json.dumps({"port": port}), flush=True)
# The tests end it by closing its input, or by ending themselves.
sys.stdin.read()
server.stop(None).wait()

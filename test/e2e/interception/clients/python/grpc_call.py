"""Calls a method of a gRPC service over TLS and prints the reply, which the server makes of the request: `grpc_call.py HOST PATH TEXT`."""

import sys

import grpc

host, path, text = sys.argv[1:]
with grpc.secure_channel(host, grpc.ssl_channel_credentials()) as channel:
    call = channel.unary_unary(path, str.encode, bytes.decode)
    print(call(text, timeout=30), end="")

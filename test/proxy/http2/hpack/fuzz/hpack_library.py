"""PyPI's hpack, asked by the fuzzer. A question a line in, an answer a line out; text holds an octet in each char."""

import json
import sys

import hpack


def octets(text):
    return text.encode("latin1")


def encode(steps):
    encoder = hpack.Encoder()
    blocks = []
    for step in steps:
        for size in step["sizes"]:
            encoder.header_table_size = size
        fields = step["fields"]
        headers = [
            (hpack.NeverIndexedHeaderTuple if never else hpack.HeaderTuple)(
                octets(fields[index * 2]), octets(fields[index * 2 + 1])
            )
            for index, never in enumerate(step["never"])
        ]
        blocks.append(encoder.encode(headers, huffman=not step["plain"]).hex())
    return blocks


def decode(steps):
    """The sections, or in the place of the last why it was refused."""
    decoder = hpack.Decoder(max_header_list_size=2**31)
    sections = []
    for step in steps:
        if step.get("limit") is not None:
            decoder.max_allowed_table_size = step["limit"]
        try:
            headers = decoder.decode(bytes.fromhex(step["block"]), raw=True)
        except hpack.HPACKError as error:
            sections.append(f"{type(error).__name__}: {error}")
            break
        fields = [part.decode("latin1") for header in headers for part in header]
        never = [header[0].decode("latin1") for header in headers if not header.indexable]
        sections.append({"fields": fields, "never": never})
    return sections


for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps(encode(asked["encode"]) if "encode" in asked else decode(asked["decode"])), flush=True)

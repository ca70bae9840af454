"""Two interfaces joined by a slow wire: what one is given comes out of the other so many milliseconds later. It
carries IPv4 alone. In the place of `tc netem`, which not every kernel has. Arguments: their names, and the delay of each
way."""

import collections
import fcntl
import os
import select
import struct
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TUN = 0x0001
IFF_NO_PI = 0x1000


def interface(name):
    opened = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(opened, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return opened


def carry(ends, delay):
    waiting = collections.deque()
    while True:
        left = None if not waiting else max(0, waiting[0][0] - time.monotonic())
        for end in select.select(ends, [], [], left)[0]:
            packet = os.read(end, 65536)
            if packet[0] >> 4 == 4:
                other = ends[1] if end == ends[0] else ends[0]
                waiting.append((time.monotonic() + delay, other, packet))
        while waiting and waiting[0][0] <= time.monotonic():
            _, other, packet = waiting.popleft()
            try:
                os.write(other, packet)
            except OSError:
                pass  # it is down


near, far, milliseconds = sys.argv[1:]
ends = [interface(near), interface(far)]
print("ready", flush=True)
carry(ends, float(milliseconds) / 1000)

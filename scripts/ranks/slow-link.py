#!/usr/bin/env python3
"""A link between two network namespaces, with a delay and losses: as tc netem, for any kernel.
    slow-link.py NAMESPACE ADDRESS NAMESPACE ADDRESS --delay-ms 1 --loss 0.01 [--seed N]
Needs root and /dev/net/tun. Each namespace gets the interface `link` with its address
(10.77.0.1/24). Packets arrive delay-ms after they were sent, in their order; a share of loss of
them does not. Prints "ready", and runs until it is killed; both interfaces then go away. SIGUSR1
cuts the link: nothing arrives from then on."""
import argparse
import collections
import ctypes
import fcntl
import os
import random
import select
import signal
import struct
import subprocess
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000


def end_in(namespace, address):
    """The file whose packets are those of a new interface there."""
    libc = ctypes.CDLL(None, use_errno=True)
    own, other = os.open("/proc/self/ns/net", os.O_RDONLY), os.open("/var/run/netns/" + namespace, os.O_RDONLY)
    if libc.setns(other, 0):
        raise OSError(ctypes.get_errno(), "cannot enter the namespace " + namespace)
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH14x", b"link", IFF_TUN | IFF_NO_PI))
    libc.setns(own, 0)
    for words in (["addr", "add", address, "dev", "link"], ["link", "set", "dev", "link", "up", "txqueuelen", "10000"]):
        subprocess.run(["ip", "-n", namespace, *words], check=True)
    return fd


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ends", nargs=4)
    parser.add_argument("--delay-ms", type=float, default=0)
    parser.add_argument("--loss", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    o = parser.parse_args()
    ends = [end_in(*o.ends[:2]), end_in(*o.ends[2:])]
    other = {ends[0]: ends[1], ends[1]: ends[0]}
    cut = []
    signal.signal(signal.SIGUSR1, lambda *_: cut.append(True))
    chance = random.Random(o.seed)
    flying = collections.deque()  # (when it arrives, where, packet), in this order as all fly for equally long
    print("ready", flush=True)
    while True:
        wait = max(flying[0][0] - time.monotonic(), 0) if flying else None
        for fd in select.select(ends, [], [], wait)[0]:
            try:
                packet = os.read(fd, 65536)
            except BlockingIOError:
                continue
            if not cut and chance.random() >= o.loss:
                flying.append((time.monotonic() + o.delay_ms / 1e3, other[fd], packet))
        while flying and flying[0][0] <= time.monotonic():
            _, fd, packet = flying.popleft()
            if not cut:
                os.write(fd, packet)


if __name__ == "__main__":
    main()

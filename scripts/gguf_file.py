"""A GGUF file of version 3, read and written: for the scripts that make models and side files of
other ones, and the numbers that tests are compared with."""
import struct

SCALAR = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
MASK = (1 << 64) - 1
P1, P2, P3, P4, P5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
                      0x27D4EB2F165667C5)


class Gguf:
    """A file's header: keys as [name, kind, value], tensors as (name, dims, kind, offset). Texts
    are bytes, an array's value is (kind of its items, items)."""

    def __init__(self, path):
        self.file = open(path, "rb")
        assert self.file.read(4) == b"GGUF" and self.read("<I") == 3, f"{path} is not GGUF v3"
        n_tensors, n_keys = self.read("<Q"), self.read("<Q")
        self.keys, self.tensors = [], []
        for _ in range(n_keys):
            name, kind = self.value(8), self.read("<I")
            self.keys.append([name, kind, self.value(kind)])
        for _ in range(n_tensors):
            name = self.value(8)
            dims = [self.read("<Q") for _ in range(self.read("<I"))]
            self.tensors.append((name, dims, self.read("<I"), self.read("<Q")))
        self.align = next((key[2] for key in self.keys if key[0] == b"general.alignment"), 32)
        self.base = (self.file.tell() + self.align - 1) // self.align * self.align
        self.n_bytes = self.file.seek(0, 2)

    def read(self, code):
        return struct.unpack(code, self.file.read(struct.calcsize(code)))[0]

    def value(self, kind):
        if kind == 8:
            return self.file.read(self.read("<Q"))
        if kind == 9:
            item, n = self.read("<I"), self.read("<Q")
            return item, [self.value(item) for _ in range(n)]
        return self.read(SCALAR[kind])

    def key(self, name):
        return next(key for key in self.keys if key[0] == name)

    def bytes_at(self, offset, n):
        self.file.seek(offset)
        return self.file.read(n)

    def identity(self):
        """The number by which side files know their model (src/weights/identity.h), of a file in
        one part."""
        page, n_samples = 4096, 32
        first = self.base + min(tensor[3] for tensor in self.tensors)
        data = self.n_bytes - first
        if data <= n_samples * page:
            samples = self.bytes_at(first, data)
        else:
            samples = b"".join(self.bytes_at(first + (data - page) * i // (n_samples - 1), page)
                               for i in range(n_samples))
        return xxh64(struct.pack("<4Q", 0, self.n_bytes, xxh64(self.bytes_at(0, first)), xxh64(samples)))


def text(value):
    return struct.pack("<Q", len(value)) + value


def packed(kind, value):
    if kind == 8:
        return text(value)
    if kind == 9:
        return struct.pack("<IQ", value[0], len(value[1])) + b"".join(packed(value[0], v) for v in value[1])
    return struct.pack(SCALAR[kind], value)


def header(keys, tensors, align=32):
    """A file's bytes before its data."""
    out = bytearray(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)))
    for name, kind, value in keys:
        out += text(name) + struct.pack("<I", kind) + packed(kind, value)
    for name, dims, kind, offset in tensors:
        out += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)
    return out + bytes(-len(out) % align)


def write(path, keys, tensors, data, align=32):
    """Writes a file; returns the bytes of its data. tensors: (name, dims, kind, bytes of each);
    data: the bytes themselves, tensor by tensor."""
    placed, n_bytes = [], 0
    for name, dims, kind, size in tensors:
        placed.append((name, dims, kind, n_bytes))
        n_bytes += -(-size // align) * align
    with open(path, "wb") as out:
        out.write(header(keys, placed, align))
        for (name, _, _, size), numbers in zip(tensors, data):
            assert len(numbers) == size, name
            out.write(numbers + bytes(-size % align))
    return n_bytes


def rotated(x, n):
    return ((x << n) | (x >> (64 - n))) & MASK


def a_round(lane, word):
    return rotated((lane + word * P2) & MASK, 31) * P1 & MASK


def xxh64(data):
    """XXH64 with seed 0, as its specification has it."""
    n, at = len(data), 0
    h = P5
    if n >= 32:
        lanes = [(P1 + P2) & MASK, P2, 0, (-P1) & MASK]
        words = struct.unpack_from(f"<{n // 32 * 4}Q", data)
        for i in range(0, len(words), 4):
            lanes = [a_round(lane, word) for lane, word in zip(lanes, words[i:i + 4])]
        h = sum(rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & MASK
        for lane in lanes:
            h = ((h ^ a_round(0, lane)) * P1 + P4) & MASK
        at = n // 32 * 32
    h = (h + n) & MASK
    while at + 8 <= n:
        h = (rotated(h ^ a_round(0, struct.unpack_from("<Q", data, at)[0]), 27) * P1 + P4) & MASK
        at += 8
    if at + 4 <= n:
        h = (rotated(h ^ struct.unpack_from("<I", data, at)[0] * P1 & MASK, 23) * P2 + P3) & MASK
        at += 4
    for byte in data[at:]:
        h = rotated(h ^ byte * P5 & MASK, 11) * P1 & MASK
    h = (h ^ h >> 33) * P2 & MASK
    h = (h ^ h >> 29) * P3 & MASK
    return h ^ h >> 32

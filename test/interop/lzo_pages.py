"""The pages of a Parquet file, decompressed where its codec is LZO: no common reader takes that codec, so the pages are
found by the footer and compared with those of the same rows without compression."""

import io
import struct

import pyarrow.parquet as pq

try:
    import lzallright
except ImportError:
    lzallright = None


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def number(data, at):
    value, at = varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def page_header(data, at, outermost=True):
    """Thrift's compact form: numbers of the outermost structure by field (2: bytes, 3: compressed bytes), and its end."""
    found, field = {}, 0
    while data[at] != 0:
        kind, step = data[at] & 15, data[at] >> 4
        at += 1
        if step == 0:
            field, at = number(data, at)
        field += step
        if kind in (4, 5, 6):
            found[field], at = number(data, at)
        elif kind == 8:
            length, at = varint(data, at)
            at += length
        elif kind == 12:
            _, at = page_header(data, at, False)
        elif kind not in (1, 2):
            raise ValueError(f"type {kind} in a page header")
    return found, at + 1


def pages(data, lzo):
    metadata = pq.read_metadata(io.BytesIO(data))
    for group in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            column = metadata.row_group(group).column(index)
            at = column.dictionary_page_offset or column.data_page_offset
            end = at + column.total_compressed_size
            while at < end:
                header, at = page_header(data, at)
                body = data[at : at + header[3]]
                at += header[3]
                yield block(body, header[2]) if lzo else body


def block(body, size):
    raw, packed = struct.unpack(">II", body[:8])
    if raw != size or packed != len(body) - 8:
        raise ValueError("the framing of a page is wrong")
    return lzallright.LZOCompressor.decompress(body[8:], output_size_hint=raw)


def check(compressed, plain):
    """How many pages are the same; None without a decoder."""
    if lzallright is None:
        return None
    found, wanted = list(pages(compressed, True)), list(pages(plain, False))
    if found != wanted:
        raise ValueError("pages of LZO hold something else")
    return len(found)

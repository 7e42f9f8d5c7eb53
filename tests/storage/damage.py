"""What disks and people do to files."""


def damaged(data, rng):
    """Return bytes with one of them changed, cut off, overwritten in part, or with more behind."""
    data = bytearray(data)
    match rng.integers(5):
        case 0 | 1:
            data[rng.integers(len(data))] ^= 1 << rng.integers(8)
        case 2:
            del data[rng.integers(len(data)) :]
        case 3:
            at = rng.integers(len(data))
            data[at : at + 16] = rng.bytes(16)
        case 4:
            data += rng.bytes(rng.integers(1, 50))
    return bytes(data)


def damage_one(folder, rng, names=None):
    """Damage or remove one file of a folder."""
    names = sorted(path.name for path in folder.iterdir()) if names is None else names
    path = folder / names[rng.integers(len(names))]
    if rng.integers(8) == 0:
        path.unlink()
    else:
        path.write_bytes(damaged(path.read_bytes(), rng))

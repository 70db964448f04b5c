// The content of one simulated file: what readers see, what is on disk, and which sectors are not synced.
// faulty-files.ts specifies what a crash may do.

import type { Random } from '../random.js'

const sectorBytes = 512

export interface FaultyInode {
  read(target: Uint8Array, position: number): number
  write(bytes: Uint8Array, position: number): void
  truncate(size: number): void
  size(): number
  sync(): void
  /** Some sectors reach the disk, the others never will. */
  failSync(random: Random): void
  crash(random: Random): void
  damage(position: number, bytes: Uint8Array): void
  content(): Uint8Array
}

/** A byte array that grows; what was never written in it is zero. */
interface Image {
  bytes: Uint8Array
  size: number
}

interface InodeState {
  readonly seen: Image
  readonly disk: Image
  readonly dirty: Set<number>
  /** A failed sync has left sectors that are clean and not on the disk. */
  lost: boolean
}

export function createInode(): FaultyInode {
  const state: InodeState = { seen: emptyImage(), disk: emptyImage(), dirty: new Set(), lost: false }
  return {
    read: (target, position) => readImage(state.seen, target, position),
    write: (bytes, position) => writeSeen(state, bytes, position),
    truncate: (size) => truncateSeen(state, size),
    size: () => state.seen.size,
    sync: () => syncInode(state),
    failSync: (random) => failSync(state, random),
    crash: (random) => crashInode(state, random),
    damage: (position, bytes) => {
      writeImage(state.disk, bytes, position)
      writeImage(state.seen, bytes, position)
    },
    content: () => state.seen.bytes.slice(0, state.seen.size),
  }
}

function emptyImage(): Image {
  return { bytes: new Uint8Array(0), size: 0 }
}

function readImage({ bytes, size }: Image, target: Uint8Array, position: number): number {
  const part = bytes.subarray(Math.min(position, size), Math.min(position + target.length, size))
  target.set(part)
  return part.length
}

function writeImage(image: Image, bytes: Uint8Array, position: number): void {
  resizeImage(image, Math.max(image.size, position + bytes.length))
  image.bytes.set(bytes, position)
}

function resizeImage(image: Image, size: number): void {
  if (size > image.bytes.length) {
    const grown = new Uint8Array(Math.max(size, image.bytes.length * 2, 1024))
    grown.set(image.bytes.subarray(0, image.size))
    image.bytes = grown
  }
  if (size < image.size) image.bytes.fill(0, size, image.size)
  image.size = size
}

function writeSeen({ seen, dirty }: InodeState, bytes: Uint8Array, position: number): void {
  if (bytes.length === 0) return
  markDirty(dirty, position, position + bytes.length)
  writeImage(seen, bytes, position)
}

function truncateSeen({ seen, dirty }: InodeState, size: number): void {
  markDirty(dirty, Math.min(seen.size, size), Math.max(seen.size, size))
  resizeImage(seen, size)
}

function markDirty(dirty: Set<number>, from: number, to: number): void {
  for (let sector = Math.floor(from / sectorBytes); sector * sectorBytes < to; sector++) dirty.add(sector)
}

/** The sector as readers see it, cut at the end of the file. */
function seenSector({ seen }: InodeState, sector: number): Uint8Array {
  return seen.bytes.subarray(sector * sectorBytes, Math.min(seen.size, (sector + 1) * sectorBytes))
}

function syncInode(state: InodeState): void {
  resizeImage(state.disk, state.seen.size)
  for (const sector of state.dirty) putSector(state.disk, sector, seenSector(state, sector))
  state.dirty.clear()
}

/** Writes what fits below the size of the image. */
function putSector(disk: Image, sector: number, bytes: Uint8Array): void {
  const at = sector * sectorBytes
  if (at < disk.size) disk.bytes.set(bytes.subarray(0, disk.size - at), at)
}

function failSync(state: InodeState, random: Random): void {
  state.lost = true
  if (random.chance(0.5)) resizeImage(state.disk, state.seen.size)
  for (const sector of state.dirty) {
    if (random.chance(0.5)) putSector(state.disk, sector, seenSector(state, sector))
  }
  state.dirty.clear()
}

function crashInode(state: InodeState, random: Random): void {
  const { disk, seen, dirty } = state
  // On a disk with 4 KiB sectors, garbage spoils the neighbours too that nobody wrote.
  const together = random.chance(0.5) ? 1 : 8
  const calm = random.next()
  if (dirty.size === 0 && disk.size === seen.size && !state.lost) return
  state.lost = false
  resizeImage(disk, crashedSize(disk.size, seen.size, random))
  const groups = new Set([...dirty].sort((a, b) => a - b).map((sector) => Math.floor(sector / together)))
  for (const group of groups) {
    const fate = drawFate(random, calm)
    for (let sector = group * together; sector < (group + 1) * together; sector++) {
      if (fate === 1 && dirty.has(sector)) putSector(disk, sector, seenSector(state, sector))
      else if (fate === 2) putSector(disk, sector, random.fill(new Uint8Array(sectorBytes)))
    }
  }
  dirty.clear()
  seen.bytes = disk.bytes.slice()
  seen.size = disk.size
}

/** 0: as before, 1: as written, 2: garbage. Calm crashes keep much, others little. */
function drawFate(random: Random, calm: number): 0 | 1 | 2 {
  if (random.chance(calm)) return 1
  return random.chance(0.5) ? 0 : 2
}

function crashedSize(disk: number, seen: number, random: Random): number {
  if (disk === seen) return disk
  const between = random.between(Math.min(disk, seen), Math.max(disk, seen))
  return random.pick([disk, seen, seen, between])
}

// Stage: cut a byte stream into blocks of whole lines.
//
//   in     Buffer chunks of any size, as a socket delivers them
//   out    LineBlock objects: whole lines, at most blockBytesMax bytes unless one line alone is longer; last, when
//          the connection has to be closed, a LineRefusal with the reason
//   state  the unfinished tail, at most one block and one line
//   owner  a block belongs to the next stage until it calls `release`; input chunks become this stage's
//   errors none: what is wrong travels behind the lines before it, which are to be stored. A line may be longer than
//          lineBytesMax; or the stream ends inside a line, which may be cut anywhere (`v=12` of `v=123`)
//
// When: a full block goes out at once, and what a turn of the event loop has brought goes out at its end. So a quick
// sender makes large blocks, a slow one waits for nothing, and there is no timer.
//
// Backpressure: while a block waits to be read, at most one more gathers here; then the write callback is held.

import { Duplex } from 'node:stream'
import { RowError } from '../engine/base/errors.js'
import { type LineBlock, LineCutter, type LineCutterOptions } from './line-cutter.js'

const blocksWaitingMax = 1

/** The stream cannot go on behind the lines before. */
export interface LineRefusal {
  readonly refusal: Error
}

export function lineBlocks(options: LineCutterOptions): Duplex {
  const cutter = new LineCutter(options)
  let wanted = true
  let held: (() => void) | null = null
  let flushPlanned = false

  const pushAll = (blocks: readonly LineBlock[]): void => {
    for (const block of blocks) wanted = stage.push(block)
  }
  const refuse = (reason: Error): void => {
    const refusal: LineRefusal = { refusal: reason }
    stage.push(refusal)
  }
  const flush = (): void => {
    flushPlanned = false
    while (wanted && cutter.lineWaits && !stage.destroyed) pushAll(blockList(cutter.cut()))
  }
  const planFlush = (): void => {
    if (flushPlanned || !wanted || !cutter.lineWaits) return
    flushPlanned = true
    setImmediate(flush)
  }

  const stage: Duplex = new Duplex({
    readableObjectMode: true,
    readableHighWaterMark: blocksWaitingMax,
    writableHighWaterMark: options.blockBytesMax,
    write(chunk: Buffer, _encoding, callback) {
      const blocks: LineBlock[] = []
      let error: unknown = null
      try {
        cutter.append(chunk, blocks)
      } catch (thrown) {
        error = thrown
      }
      pushAll(blocks)
      if (error !== null) {
        // The callback is never called: nothing more is read until the refusal has closed the connection.
        refuse(error as Error)
        return
      }
      planFlush()
      if (wanted || cutter.pendingBytes < options.blockBytesMax / 2) callback()
      else held = callback
    },
    read() {
      wanted = true
      const release = held
      held = null
      planFlush()
      release?.()
    },
    final(callback) {
      cutter.finish()
      while (cutter.lineWaits) pushAll(blockList(cutter.cut()))
      if (cutter.pendingBytes > 0) refuse(unfinished(cutter.pendingBytes))
      stage.push(null)
      callback()
    },
  })
  return stage
}

function blockList(block: LineBlock | null): LineBlock[] {
  return block === null ? [] : [block]
}

function unfinished(bytes: number): RowError {
  return new RowError(`connection closed inside a line, which is dropped [bytes=${bytes}]`, 0)
}

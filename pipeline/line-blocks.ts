// Stage: cuts a byte stream into blocks of whole lines.
//
//   in     Buffer chunks of any size, as a socket delivers them
//   out    LineBlock objects: whole lines, at most blockBytesMax bytes unless a single line is longer; finally,
//          when the connection must be closed, a LineRefusal with the reason
//   state  the unfinished tail, at most one block and one line
//   owner  a block belongs to the next stage until it calls `release`; input chunks become this stage's
//   errors none. If a line exceeds lineBytesMax, or the stream ends inside a line (possibly within a value: `v=12` of
//          `v=123`), the complete lines before it are passed on first, since they must be stored; then the LineRefusal
//
// Timing: a full block is passed on at once; whatever else arrives in a turn of the event loop is passed on at its
// end. So a fast sender produces large blocks, a slow one is not delayed, and no timer is needed.
//
// Backpressure: while a block waits to be read, at most one more is collected here; then the write callback is
// delayed.

import { Duplex } from 'node:stream'
import { RowError } from '../engine/base/errors.js'
import { type LineBlock, LineCutter, type LineCutterOptions } from './line-cutter.js'

const blocksWaitingMax = 1

/** The stream must be closed after the lines before it. */
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
        // The callback is never called, so nothing more is read until the connection has been closed.
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
  return new RowError(`connection closed within a line, which was discarded [bytes=${bytes}]`, 0)
}

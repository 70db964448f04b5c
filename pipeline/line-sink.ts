// Stage: passes blocks of lines to the engine; the last stage of line protocol over TCP.
//
//   in     LineBlock objects; a LineRefusal fails the stream
//   out    -
//   owner  a block is released when the engine has copied it
//   errors rejections by the engine; RowError when a line was bad and `badLine` is 'close'
//
// Backpressure: `write` calls back when the writer has room for the block. `final` waits for the receipts (the outcomes
// of all writes).

import { Writable } from 'node:stream'
import { RowError } from '../engine/base/errors.js'
import type { Engine, LinePrecision, Receipt } from '../engine/engine.js'
import type { LineRefusal } from './line-blocks.js'
import type { LineBlock } from './line-cutter.js'

export interface LineSinkOptions {
  readonly engine: Pick<Engine, 'lines'>
  readonly connectionId: number
  readonly precision: LinePrecision
  /** What a bad line means for the lines after it. */
  readonly badLine: 'close' | 'skip'
  /** Called for each block, possibly after the end of the stream. */
  readonly onReceipt: (receipt: Receipt) => void
}

export function lineSink({ engine, connectionId, precision, badLine, onReceipt }: LineSinkOptions): Writable {
  let receiptsDue = 0
  let finish: (() => void) | null = null

  const settled = (): void => {
    receiptsDue--
    if (receiptsDue === 0) finish?.()
  }
  const received = (receipt: Receipt): void => {
    onReceipt(receipt)
    const reason = refusalOf(receipt)
    if (reason !== null && badLine === 'close') sink.destroy(reason)
    settled()
  }
  const failed = (error: Error): void => {
    sink.destroy(error)
    settled()
  }

  const sink: Writable = new Writable({
    objectMode: true,
    highWaterMark: 1,
    write(block: LineBlock | LineRefusal, _encoding, callback) {
      if ('refusal' in block) {
        callback(block.refusal)
        return
      }
      const ticket = engine.lines({
        blocks: [block.bytes],
        precision,
        atomic: false,
        skipBadLines: badLine === 'skip',
        connectionId,
      })
      receiptsDue++
      ticket.receipt.then(received, failed)
      ticket.taken.then(() => {
        block.release()
        callback()
      }, callback)
    },
    final(callback) {
      if (receiptsDue === 0) callback()
      else finish = callback
    },
  })
  return sink
}

/** What is wrong with the first line that was not stored; null when all were. */
export function refusalOf({ error, rejects }: Receipt): RowError | null {
  const reject = rejects[0]
  if (reject !== undefined) return new RowError(reject.message, reject.line)
  return error === null ? null : new RowError(error.message, error.place)
}

// The work of the log thread, which keeps slow disk operations away from the writer: it syncs the log files (segments)
// that the writer has written to, creates zero-filled segments and files of the space reserve (reserve.ts) in advance,
// and removes old segments. An object with a step() method; its host decides on which thread it runs.
//
// Priorities: syncs first, since commits wait for them; then the sync of the high-water marks, a file that records how
// far the log is durable; then one step of filling a new file, so that a sync never waits for 64 MiB of zeros; then
// removals.
//
// Invariants:
//   1. Descriptors are synced in the order of the requests. Consecutive requests for the same descriptor are combined
//      into one sync, reported with the last sequence.
//   2. A prepared segment gets its name when its zeros are durable, so a file with that name never has other contents.
//   3. The removal of a segment is durable before the next one is removed.

import { assert } from '../base/assert.js'
import { type ErrorRecord, errorRecord, FileError } from '../base/errors.js'
import type { File, Files } from '../base/files.js'
import { unfinishedSuffix, zeroChunks } from './segment.js'
import type { LogReport, LogRequest } from './types.js'

/** Zeros written and synced per step of a preparation, which takes a few milliseconds. */
const chunkBytes = 4 * 1024 * 1024

export interface LogLoop {
  step(): 'worked' | 'idle'
}

export interface LogLoopOptions {
  readonly files: Files
  /** The next request; undefined if there is none. */
  readonly take: () => LogRequest | undefined
  readonly report: (report: LogReport) => void
}

type SyncRequest = Extract<LogRequest, { kind: 'sync' }>
type PrepareRequest = Extract<LogRequest, { kind: 'prepare' }>
type MarkRequest = Extract<LogRequest, { kind: 'mark' }>
type RemoveRequest = Extract<LogRequest, { kind: 'remove' }>

interface Preparation {
  readonly request: PrepareRequest
  readonly file: File
  done: number
}

interface LogQueues {
  readonly syncs: SyncRequest[]
  readonly marks: MarkRequest[]
  readonly prepares: PrepareRequest[]
  readonly removes: RemoveRequest[]
  preparation: Preparation | undefined
}

export function createLogLoop(options: LogLoopOptions): LogLoop {
  const queues: LogQueues = { syncs: [], marks: [], prepares: [], removes: [], preparation: undefined }
  return {
    step: () => {
      takeRequests(options, queues)
      if (syncNext(options, queues.syncs)) return 'worked'
      if (markNext(options, queues.marks) || prepareNext(options, queues)) return 'worked'
      return removeNext(options, queues.removes) ? 'worked' : 'idle'
    },
  }
}

function takeRequests({ take }: LogLoopOptions, { syncs, marks, prepares, removes }: LogQueues): void {
  for (let request = take(); request !== undefined; request = take()) {
    if (request.kind === 'sync') syncs.push(request)
    else if (request.kind === 'mark') marks.push(request)
    else if (request.kind === 'prepare') prepares.push(request)
    else removes.push(request)
  }
}

function syncNext({ files, report }: LogLoopOptions, syncs: SyncRequest[]): boolean {
  const first = syncs[0]
  if (first === undefined) return false
  const other = syncs.findIndex(({ descriptor }) => descriptor !== first.descriptor)
  const run = syncs.splice(0, other < 0 ? syncs.length : other)
  const sequence = run.at(-1)?.sequence ?? first.sequence
  assert(sequence >= first.sequence, 'L1: syncs are reported in the order of their requests')
  const error = failureOf(() => files.syncDescriptor(first.descriptor))
  report(error === undefined ? { kind: 'synced', sequence } : { kind: 'syncFailed', sequence, error })
  return true
}

function markNext({ files, report }: LogLoopOptions, marks: MarkRequest[]): boolean {
  const request = marks.shift()
  if (request === undefined) return false
  report({ kind: 'marked', error: failureOf(() => files.syncDescriptor(request.descriptor)) })
  return true
}

function prepareNext(options: LogLoopOptions, queues: LogQueues): boolean {
  const request = queues.preparation?.request ?? queues.prepares.shift()
  if (request === undefined) return false
  const error = failureOf(() => {
    queues.preparation ??= beginPreparation(options.files, request)
    if (continuePreparation(options.files, queues.preparation)) {
      queues.preparation = undefined
      options.report({ kind: 'prepared', path: request.path })
    }
  })
  if (error !== undefined) {
    abandon(options.files, queues.preparation)
    queues.preparation = undefined
    options.report({ kind: 'prepareFailed', path: request.path, error })
  }
  return true
}

function beginPreparation(files: Files, request: PrepareRequest): Preparation {
  return { request, file: files.open(request.path + unfinishedSuffix, 'create'), done: 0 }
}

/** Writes the next zeros; returns true when the segment is complete. */
function continuePreparation(files: Files, preparation: Preparation): boolean {
  const { request, file } = preparation
  const chunk = Math.min(chunkBytes, request.bytes - preparation.done)
  if (chunk > 0) {
    file.write(zeroChunks(chunk), preparation.done)
    file.sync()
    preparation.done += chunk
  }
  if (preparation.done < request.bytes) return false
  assert(preparation.done === request.bytes, 'L5: a prepared segment has its exact size')
  file.close()
  files.rename(request.path + unfinishedSuffix, request.path)
  files.syncDirectory(request.directory)
  return true
}

function abandon(files: Files, preparation: Preparation | undefined): void {
  if (preparation === undefined) return
  failureOf(() => preparation.file.close())
  failureOf(() => files.remove(preparation.request.path + unfinishedSuffix))
}

function removeNext({ files, report }: LogLoopOptions, removes: RemoveRequest[]): boolean {
  const request = removes.shift()
  if (request === undefined) return false
  const left = [...request.paths]
  const error = failureOf(() => {
    for (const path of request.paths) {
      if (files.exists(path)) files.remove(path)
      files.syncDirectory(request.directory)
      left.shift()
    }
  })
  report(error === undefined ? { kind: 'removed' } : { kind: 'removeFailed', paths: left, error })
  return true
}

/** Runs the work; returns the error of the operating system, if any. Other errors are bugs and are thrown. */
function failureOf(work: () => void): ErrorRecord | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    if (error instanceof FileError) return errorRecord(error)
    throw error
  }
}

// Log files: `<root>/log/stdout-<date>.txt`, one a day (UTC), and the link penstock-latest.log to the newest.
//
// Records are gathered and appended in the background, one write at a time. A disk that is full or gone never stops the
// server: what cannot be written is dropped and counted, and the count is logged when writing works again.

import { appendFileSync, rmSync, symlinkSync } from 'node:fs'
import { appendFile, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

export const latestLink = 'penstock-latest.log'

/** Characters that may wait for the disk. */
const waitingMax = 4 * 1024 * 1024
const namePattern = /^stdout-(\d{4}-\d{2}-\d{2})\.txt$/
const dayMs = 86_400_000

export interface LogFile {
  /** Never throws, never blocks. */
  append(line: string, timeMs: number): void
  /** Writes what waits, synchronously; for the end of the process. */
  flush(): void
  /** Days that files are kept from now on. */
  keep(days: number): void
  /** Records that could not be written, ever. */
  readonly dropped: number
}

export interface LogFileOptions {
  readonly folder: string
  /** 0 keeps all. */
  readonly daysKept: number
  /** What is said about dropped records, as a line in the usual form. */
  readonly droppedLine: (records: number) => string
}

export function openLogFile({ folder, daysKept: daysFirst, droppedLine }: LogFileOptions): LogFile {
  let daysKept = daysFirst
  let lost = 0
  let date = ''
  let path = ''
  let waiting = ''
  let waitingRecords = 0
  let dropped = 0
  let writing = false

  const turnTo = (newDate: string): void => {
    flush()
    date = newDate
    path = join(folder, fileName(date))
    link(folder, fileName(date))
    if (daysKept > 0) void removeOld(folder, date, daysKept)
  }
  const lose = (records: number): void => {
    dropped += records
    lost += records
  }
  /** What waits, behind a word about what was dropped; a write that failed may have left half a record. */
  const take = (): { text: string; fresh: number; told: number } => {
    const text = (dropped > 0 ? `\n${droppedLine(dropped)}` : '') + waiting
    const taken = { text, fresh: waitingRecords, told: dropped }
    waiting = ''
    waitingRecords = 0
    dropped = 0
    return taken
  }
  const pump = async (): Promise<void> => {
    writing = true
    while (waitingRecords > 0) {
      const { text, fresh, told } = take()
      try {
        await appendFile(path, text)
      } catch {
        dropped += told
        lose(fresh)
        if (waitingRecords === 0) break
      }
    }
    writing = false
  }
  const flush = (): void => {
    if (waitingRecords === 0 || path === '') return
    const { text, fresh, told } = take()
    try {
      appendFileSync(path, text)
    } catch {
      dropped += told
      lose(fresh)
    }
  }

  return {
    append: (line, timeMs) => {
      const day = new Date(timeMs).toISOString().slice(0, 10)
      if (day !== date) turnTo(day)
      if (waiting.length + line.length > waitingMax) {
        lose(1)
        return
      }
      waiting += line
      waitingRecords++
      if (!writing) setImmediate(() => (writing ? undefined : void pump()))
    },
    flush,
    keep: (days) => {
      daysKept = days
      if (date !== '' && daysKept > 0) void removeOld(folder, date, daysKept)
    },
    get dropped() {
      return lost
    },
  }
}

function fileName(date: string): string {
  return `stdout-${date}.txt`
}

function link(folder: string, target: string): void {
  try {
    rmSync(join(folder, latestLink), { force: true })
    symlinkSync(target, join(folder, latestLink))
  } catch {
    // A file system without links has the files all the same.
  }
}

async function removeOld(folder: string, today: string, daysKept: number): Promise<void> {
  const oldest = new Date(Date.parse(today) - (daysKept - 1) * dayMs).toISOString().slice(0, 10)
  try {
    for (const name of await readdir(folder)) {
      const date = namePattern.exec(name)?.[1]
      if (date !== undefined && date < oldest) await rm(join(folder, name), { force: true })
    }
  } catch {
    // Tried again tomorrow.
  }
}

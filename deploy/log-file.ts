// Log files: `<root>/log/stdout-<date>.txt`, one per day (UTC), and the link penstock-latest.log to the newest one.
// Files are removed after a configured number of days.
//
// Records are buffered and appended in the background, one write at a time. A full or missing disk never stops the
// server: records that cannot be written are dropped and counted, and the count is logged when writing works again.

import { appendFileSync, rmSync, symlinkSync } from 'node:fs'
import { appendFile, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

const latestLink = 'penstock-latest.log'

/** Maximum number of buffered characters. */
const waitingMax = 4 * 1024 * 1024
const namePattern = /^stdout-(\d{4}-\d{2}-\d{2})\.txt$/
const dayMs = 86_400_000

export interface LogFile {
  /** Never throws, never blocks. */
  append(line: string, timeMs: number): void
  /** Writes the buffered records synchronously, at the end of the process. */
  flush(): void
  /** Changes the number of days for which files are kept. */
  keep(days: number): void
  /** Number of records that could not be written since the start. */
  readonly dropped: number
}

export interface LogFileOptions {
  readonly folder: string
  /** 0 keeps all. */
  readonly daysKept: number
  /** Formats a log record about dropped records. */
  readonly droppedLine: (records: number) => string
}

export function openLogFile(options: LogFileOptions): LogFile {
  return new DailyFile(options)
}

class DailyFile implements LogFile {
  readonly #folder: string
  readonly #droppedLine: LogFileOptions['droppedLine']
  #daysKept: number
  #date = ''
  #waiting = ''
  #waitingRecords = 0
  /** Dropped records that were not reported yet, and all dropped records. */
  #unreported = 0
  #lost = 0
  #writing = false

  constructor({ folder, daysKept, droppedLine }: LogFileOptions) {
    this.#folder = folder
    this.#daysKept = daysKept
    this.#droppedLine = droppedLine
  }

  get dropped(): number {
    return this.#lost
  }

  append(line: string, timeMs: number): void {
    const day = new Date(timeMs).toISOString().slice(0, 10)
    if (day !== this.#date) this.#turnTo(day)
    if (this.#waiting.length + line.length > waitingMax) {
      this.#lose(1)
      return
    }
    this.#waiting += line
    this.#waitingRecords++
    if (!this.#writing) setImmediate(() => (this.#writing ? undefined : void this.#pump()))
  }

  flush(): void {
    if (this.#waitingRecords === 0 || this.#date === '') return
    const { text, fresh, reported } = this.#take()
    try {
      appendFileSync(this.#path, text)
    } catch {
      this.#unreported += reported
      this.#lose(fresh)
    }
  }

  keep(days: number): void {
    this.#daysKept = days
    this.#removeOld()
  }

  get #path(): string {
    return join(this.#folder, fileName(this.#date))
  }

  #turnTo(date: string): void {
    this.flush()
    this.#date = date
    link(this.#folder, fileName(date))
    this.#removeOld()
  }

  #removeOld(): void {
    if (this.#daysKept > 0 && this.#date !== '') void removeOld(this.#folder, this.#date, this.#daysKept)
  }

  #lose(records: number): void {
    this.#unreported += records
    this.#lost += records
  }

  /**
   * Takes the buffered records, preceded by a report of dropped ones. It starts a new line, since a failed write may be
   * partial.
   */
  #take(): { text: string; fresh: number; reported: number } {
    const text = (this.#unreported > 0 ? `\n${this.#droppedLine(this.#unreported)}` : '') + this.#waiting
    const taken = { text, fresh: this.#waitingRecords, reported: this.#unreported }
    this.#waiting = ''
    this.#waitingRecords = 0
    this.#unreported = 0
    return taken
  }

  async #pump(): Promise<void> {
    this.#writing = true
    while (this.#waitingRecords > 0) {
      const { text, fresh, reported } = this.#take()
      try {
        await appendFile(this.#path, text)
      } catch {
        this.#unreported += reported
        this.#lose(fresh)
        if (this.#waitingRecords === 0) break
      }
    }
    this.#writing = false
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
    // Without the link, as on file systems that have none, the files are there nevertheless.
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
    // Tried again on the next day.
  }
}

// The server's log. Records are lines, `<timestamp> <level> <logger> <message>`, or JSON objects (setting log.format).
// The only module that uses the package pino; the lines are written by a stream of our own, which takes level and
// message from pino's metadata and does not parse its JSON.

import { pino } from 'pino'
import type { Log, LogLevel } from '../engine/base/log.js'
import { type LogFile, openLogFile } from './log-file.js'

export interface ServerLog {
  readonly log: Log
  /** Writes the buffered records, at the end of the process. */
  flush(): void
  reconfigure(level: LogLevel, daysKept: number): void
  /** Number of records that could not be written. */
  readonly dropped: number
}

export interface ServerLogOptions {
  readonly folder: string
  readonly daysKept: number
  /** Default: text. */
  readonly format?: 'text' | 'json'
  /** The lowest level that is written; default: all. */
  readonly level?: LogLevel
  /** Records are also written there; null: only to files. */
  readonly terminal: { write(text: string): unknown } | null
  readonly nowMs: () => number
}

/** pino's names of our levels. */
const levels = { I: 'info', W: 'warn', E: 'error', C: 'fatal' } as const satisfies Record<LogLevel, string>
const levelCodes: Readonly<Record<number, LogLevel>> = { 30: 'I', 40: 'W', 50: 'E', 60: 'C' }

export function openLog({ folder, daysKept, format, level, terminal, nowMs }: ServerLogOptions): ServerLog {
  const record = format === 'json' ? recordJson : recordLine
  const droppedLine = (records: number): string =>
    record(nowMs(), 'E', 'log', `records could not be written and are lost [count=${records}]`)
  const file = openLogFile({ folder, daysKept, droppedLine })
  const logger = pino({ base: null, level: levels[level ?? 'I'] }, recordStream(file, terminal, nowMs, record))
  return {
    log: (of, name, message) => logger[levels[of]]({ logger: name }, message),
    flush: () => file.flush(),
    reconfigure: (least, days) => {
      logger.level = levels[least]
      file.keep(days)
    },
    get dropped() {
      return file.dropped
    },
  }
}

/** Formats a record as a JSON object. */
function recordJson(timeMs: number, level: LogLevel, logger: string, message: string): string {
  return `${JSON.stringify({ time: new Date(timeMs).toISOString(), level, logger, message })}\n`
}

/** Formats a record as a line. Line breaks in the message are escaped, so that clients cannot forge records. */
function recordLine(timeMs: number, level: LogLevel, logger: string, message: string): string {
  const text = message.replaceAll('\n', '\\n').replaceAll('\r', '\\r')
  return `${new Date(timeMs).toISOString()} ${level} ${logger} ${text}\n`
}

interface PinoMetadata {
  lastLevel: number
  lastMsg: string
  lastObj: { readonly logger: string }
}

function recordStream(
  file: LogFile,
  terminal: ServerLogOptions['terminal'],
  nowMs: () => number,
  record: typeof recordLine,
): pino.DestinationStream {
  const stream = {
    [Symbol.for('pino.metadata')]: true,
    lastLevel: 0,
    lastMsg: '',
    lastObj: { logger: '' },
    write(): void {
      const { lastLevel, lastMsg, lastObj }: PinoMetadata = stream
      const timeMs = nowMs()
      const line = record(timeMs, levelCodes[lastLevel] ?? 'I', lastObj.logger, lastMsg)
      file.append(line, timeMs)
      terminal?.write(line)
    },
  }
  return stream
}

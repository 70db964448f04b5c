// The adapter of pino. Our records are text, `<timestamp> <level> <logger> <message>`, written by one stream of our own
// that takes level and message from pino's metadata instead of parsing its JSON.

import { pino } from 'pino'
import type { Log, LogLevel } from '../engine/base/log.js'
import { type LogFile, openLogFile } from './log-file.js'

export interface ServerLog {
  readonly log: Log
  /** Writes what waits; for the end of the process. */
  flush(): void
  reconfigure(level: LogLevel, daysKept: number): void
  /** Records that could not be written. */
  readonly dropped: number
}

export interface ServerLogOptions {
  readonly folder: string
  readonly daysKept: number
  /** Default: text. */
  readonly format?: 'text' | 'json'
  /** The least level that is written; default: all. */
  readonly level?: LogLevel
  /** Records go there as well; null for files alone. */
  readonly terminal: { write(text: string): unknown } | null
  readonly nowMs: () => number
}

/** pino's own level of each of ours. */
const levels = { I: 'info', W: 'warn', E: 'error', C: 'fatal' } as const satisfies Record<LogLevel, string>
const letters: Readonly<Record<number, LogLevel>> = { 30: 'I', 40: 'W', 50: 'E', 60: 'C' }

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

/** The same record as one JSON object. */
function recordJson(timeMs: number, level: LogLevel, logger: string, message: string): string {
  return `${JSON.stringify({ time: new Date(timeMs).toISOString(), level, logger, message })}\n`
}

/** One record; line ends within the message are escaped, so that nobody can forge records. */
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
      const line = record(timeMs, letters[lastLevel] ?? 'I', lastObj.logger, lastMsg)
      file.append(line, timeMs)
      terminal?.write(line)
    },
  }
  return stream
}

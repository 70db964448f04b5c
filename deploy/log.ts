// The adapter of pino. Our records are text, `<timestamp> <level> <logger> <message>`, written by one stream of our own
// that takes level and message from pino's metadata instead of parsing its JSON.

import { pino } from 'pino'
import type { Log, LogLevel } from '../engine/base/log.js'
import { type LogFile, openLogFile } from './log-file.js'

export interface ServerLog {
  readonly log: Log
  /** Writes what waits; for the end of the process. */
  flush(): void
}

export interface ServerLogOptions {
  readonly folder: string
  readonly daysKept: number
  /** Records go there as well; null for files alone. */
  readonly terminal: { write(text: string): unknown } | null
  readonly nowMs: () => number
}

/** pino's own level of each of ours. */
const levels = { I: 'info', W: 'warn', E: 'error', C: 'fatal' } as const satisfies Record<LogLevel, string>
const letters: Readonly<Record<number, LogLevel>> = { 30: 'I', 40: 'W', 50: 'E', 60: 'C' }

export function openLog({ folder, daysKept, terminal, nowMs }: ServerLogOptions): ServerLog {
  const droppedLine = (records: number): string =>
    recordLine(nowMs(), 'E', 'log', `records could not be written and are lost [count=${records}]`)
  const file = openLogFile({ folder, daysKept, droppedLine })
  const logger = pino({ base: null, level: 'info' }, textStream(file, terminal, nowMs))
  return {
    log: (level, name, message) => logger[levels[level]]({ logger: name }, message),
    flush: () => file.flush(),
  }
}

/** One record; line ends within the message are escaped, so that nobody can forge records. */
export function recordLine(timeMs: number, level: LogLevel, logger: string, message: string): string {
  const text = message.replaceAll('\n', '\\n').replaceAll('\r', '\\r')
  return `${new Date(timeMs).toISOString()} ${level} ${logger} ${text}\n`
}

interface PinoMetadata {
  lastLevel: number
  lastMsg: string
  lastObj: { readonly logger: string }
}

function textStream(
  file: LogFile,
  terminal: ServerLogOptions['terminal'],
  nowMs: () => number,
): pino.DestinationStream {
  const stream = {
    [Symbol.for('pino.metadata')]: true,
    lastLevel: 0,
    lastMsg: '',
    lastObj: { logger: '' },
    write(): void {
      const { lastLevel, lastMsg, lastObj }: PinoMetadata = stream
      const timeMs = nowMs()
      const line = recordLine(timeMs, letters[lastLevel] ?? 'I', lastObj.logger, lastMsg)
      file.append(line, timeMs)
      terminal?.write(line)
    },
  }
  return stream
}

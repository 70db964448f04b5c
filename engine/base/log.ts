// The logging interface of all layers below deploy/, which passes the implementation to them; tests pass a fake.

export type LogLevel = 'I' | 'W' | 'E' | 'C'

/** Writes one record: level, logger name (`wal`, `ilp`, ...) and message. Never throws, never blocks. */
export type Log = (level: LogLevel, logger: string, message: string) => void

/** Drops every record. */
export const silentLog: Log = () => {}

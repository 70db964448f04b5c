// What layers below deploy/ see of logging: one narrow interface. deploy/ hands in the real sink; tests hand in a fake.

export type LogLevel = 'I' | 'W' | 'E' | 'C'

/** Writes one record: level, logger name (`wal`, `ilp`, ...) and message. Never throws, never blocks. */
export type Log = (level: LogLevel, logger: string, message: string) => void

/** Drops every record. */
export const silentLog: Log = () => {}

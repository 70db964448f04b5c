// A record that cannot become a row; the message says why, for sys.rejects and the dead-letter topic.

export class BadRecordError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'BadRecordError'
  }
}

// Error for a record that cannot become a row; sys.rejects and the dead-letter topic get its message.

export class BadRecordError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'BadRecordError'
  }
}

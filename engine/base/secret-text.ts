// Recognises SQL statements that may contain a secret, such as a password, by words in their text. Such statements must
// not be cached, logged or traced.

const words = /\b(?:pass(?:word|wd|phrase)|secret|token|credentials?|api_?key|access_?key)/i

/** Length of the prefix to search: longer statements insert rows. */
const lookedAtCharacters = 16_384

/** Whether a statement may contain a secret; errs on the safe side. */
export function mayContainSecret(sql: string): boolean {
  return words.test(sql.length > lookedAtCharacters ? sql.slice(0, lookedAtCharacters) : sql)
}

/** The statement as logs and traces may show it. */
export function redactedText(sql: string): string {
  return mayContainSecret(sql) ? '(hidden: the statement speaks of a secret)' : sql
}

// Statements that may hold a secret: they are neither cached nor logged nor traced.

const words = /\b(?:pass(?:word|wd|phrase)|secret|token|credentials?|api_?key|access_?key)/i

/** Secrets stand at the beginning: longer statements are rows. */
const lookedAtCharacters = 16_384

/** Whether a statement speaks of secrets; better once too often. */
export function holdsSecret(sql: string): boolean {
  return words.test(sql.length > lookedAtCharacters ? sql.slice(0, lookedAtCharacters) : sql)
}

/** A statement as logs and traces may show it. */
export function shownText(sql: string): string {
  return holdsSecret(sql) ? '(hidden: the statement speaks of a secret)' : sql
}

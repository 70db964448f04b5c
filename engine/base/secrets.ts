// Statements that may hold secrets: they are not cached, and what logs and traces show of them has no texts.

/** About users, or with a word in it that announces a secret. */
const sensitive = /\b(create|alter)\s+(user|role)\b|\b(password|passwd|pwd|secret|api_key|private_key)\b/i

/** Secrets stand at the beginning: long statements are rows. */
const lookedAtCharacters = 8192

export function isSensitive(sql: string): boolean {
  return sensitive.test(sql.length > lookedAtCharacters ? sql.slice(0, lookedAtCharacters) : sql)
}

/** The statement as it may be shown: the texts of a sensitive one are gone. */
export function shownStatement(sql: string): string {
  return isSensitive(sql) ? sql.replace(/'(?:[^']|'')*(?:'|$)/g, "'***'") : sql
}

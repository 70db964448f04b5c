// Escapes a field in the text format of PostgreSQL's COPY: a character that would separate fields or rows, such as tab
// or newline, becomes a backslash and a letter.

const escapes: Readonly<Record<string, string>> = {
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
}

export function escapeCopyField(text: string, delimiter: string): string {
  const escaped = text.replace(/[\b\f\n\r\t\v\\]/g, (character) => escapes[character] ?? character)
  return delimiter === '\t' ? escaped : escaped.replaceAll(delimiter, `\\${delimiter}`)
}

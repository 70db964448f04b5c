// Escapes a field in the text format of COPY: a backslash and a letter replace characters that separate fields or
// rows.

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

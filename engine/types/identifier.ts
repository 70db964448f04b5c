// Names as SQL writes them: with quotes where they need them, and in parts.

export function quoteIdent(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`
}

/** The parts of a written name: `"a.b".c` has two. Without quotes letters are small. */
export function nameParts(written: string): string[] {
  return [...written.matchAll(/"((?:[^"]|"")*)"|([^".\s][^".]*)/g)].map(([, quoted, plain = '']) =>
    quoted === undefined ? plain.trim().toLowerCase() : quoted.replaceAll('""', '"'),
  )
}

// Writes and parses SQL identifiers: quotes them where necessary and splits qualified names.

export function quoteIdent(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`
}

/** Splits a qualified name: `"a.b".c` has two parts. Unquoted parts are folded to lower case. */
export function nameParts(written: string): string[] {
  return [...written.matchAll(/"((?:[^"]|"")*)"|([^".\s][^".]*)/g)].map(([, quoted, plain = '']) =>
    quoted === undefined ? plain.trim().toLowerCase() : quoted.replaceAll('""', '"'),
  )
}

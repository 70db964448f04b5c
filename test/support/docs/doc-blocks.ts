// Reads the fenced blocks of Markdown pages that can be run, and replaces documented results.
//
//   ```sql       statements; over HTTP, as the console and the command line tool send them
//   ```sql pg    statements over the PostgreSQL wire protocol, all blocks of a page in one session
//   ```sh        commands; `penstock` is the tool, and addresses of a local server refer to the test's server
//   ```python    programs, where a Python with pandas is at hand
//   ```java ..   whole programs beside a server: the languages of doc-programs.ts; embedded.test.ts runs `js`
//
// If the next block is a ```text block, with nothing but blank lines between, it is the expected output: of the last
// statement, as `penstock sql` prints it, or of all commands. ```text error is the output of a block that must fail,
// and a block without an output must succeed. `norun` after the language excludes a block.

import { isLanguage } from './doc-programs.js'

export interface DocBlock {
  /** `sql`, `sql pg`, `sh`, `python`, or a language of doc-programs.ts. */
  readonly kind: string
  readonly text: string
  /** From 1: the line of the opening fence. */
  readonly line: number
  /** null: there is no documented result. */
  readonly expected: string | null
  readonly mustFail: boolean
  /** Lines of the documented result, from 0, without its fences. */
  readonly expectedFrom: number
  readonly expectedTo: number
}

interface Fence {
  readonly info: string
  /** Lines from 0, of both fences. */
  readonly open: number
  readonly close: number
}

const kinds: readonly string[] = ['sql', 'sql pg', 'sh', 'python']

function canRun(info: string): boolean {
  return kinds.includes(info) || isLanguage(info)
}

export function runnableBlocks(page: string): DocBlock[] {
  const lines = page.split('\n')
  const fences = fencesOf(lines)
  return fences.flatMap(({ info, open, close }, index) => {
    if (!canRun(info)) return []
    const next = fences[index + 1]
    const isResult =
      next !== undefined &&
      /^text( error)?$/.test(next.info) &&
      lines.slice(close + 1, next.open).every((line) => line.trim() === '')
    const [from, to] = isResult ? [next.open + 1, next.close] : [close, close]
    return {
      ...{ kind: info, text: lines.slice(open + 1, close).join('\n'), line: open + 1 },
      ...{ expected: isResult ? lines.slice(from, to).join('\n') : null },
      ...{ mustFail: isResult && next.info === 'text error', expectedFrom: from, expectedTo: to },
    }
  })
}

function fencesOf(lines: readonly string[]): Fence[] {
  const found: Fence[] = []
  let open: { readonly info: string; readonly open: number } | null = null
  for (const [index, line] of lines.entries()) {
    const [, info] = /^```(.*)$/.exec(line) ?? []
    if (info === undefined) continue
    if (open === null) open = { info: info.trim(), open: index }
    else {
      found.push({ ...open, close: index })
      open = null
    }
  }
  if (open !== null) throw new Error(`a block is not closed [line=${open.open + 1}]`)
  return found
}

/** The page with the results that its blocks have now. */
export function withResults(page: string, results: readonly (readonly [DocBlock, string])[]): string {
  const lines = page.split('\n')
  for (const [{ expected, expectedFrom, expectedTo }, result] of results.toReversed())
    if (expected !== null) lines.splice(expectedFrom, expectedTo - expectedFrom, ...result.split('\n'))
  return lines.join('\n')
}

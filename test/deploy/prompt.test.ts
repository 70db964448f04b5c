// Goal: the interactive prompt of `penstock sql` runs statements over several lines, completes names, and keeps a
// history without secrets; Ctrl-C cancels the statement and does not end the prompt. Also: the generated completion
// script works in bash, and those for zsh and fish have every command and option. Method: a fake client answers the
// statements.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { gunzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Client, type Reply, ToolError } from '../../deploy/cli/http-client.js'
import { converse } from '../../deploy/cli/prompt.js'
import { completionScript } from '../../deploy/cli/shell-completions.js'

const folder = mkdtempSync(join(tmpdir(), 'penstock-prompt-'))
const historyFile = join(folder, 'history')
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Rows by the beginning of a statement. */
const answers: readonly (readonly [
  begin: RegExp,
  columns: readonly string[],
  rows: readonly (readonly unknown[])[],
])[] = [
  [/^SELECT table_name FROM tables/, ['table_name'], [['trades'], ['my quotes']]],
  [/^SELECT keyword/, ['keyword'], [['select'], ['sample']]],
  [/^SELECT DISTINCT name FROM functions/, ['name'], [['avg']]],
  [/^SELECT "column"/, ['column', 'type'], [['price', 'DOUBLE']]],
]

function replyOf(status: number, body: object): Reply {
  const stream = Object.assign(Readable.from([]), { text: async () => JSON.stringify(body) })
  return { status, headers: {}, body: stream, trailers: {} }
}

let sent: string[] = []
let input = new PassThrough()
let shown = ''
let ended: Promise<void> = Promise.resolve()

const client: Client = {
  get: async (path, { query = '', fmt = '' }, signal) => {
    if (path === 'exp') {
      const headers = { 'x-row-count': '10001' }
      return {
        ...replyOf(200, {}),
        headers,
        body: Object.assign(Readable.from([Buffer.from(`${fmt} of ${query}\n`)]), { text: async () => '' }),
      }
    }
    const known = answers.find(([begin]) => begin.test(query))
    if (known !== undefined) {
      const [, columns, dataset] = known
      return replyOf(200, {
        columns: columns.map((name) => ({ name, type: 'STRING' })),
        dataset,
        count: dataset.length,
      })
    }
    sent.push(query)
    if (query === 'hang') {
      return new Promise((_resolve, reject) =>
        signal?.addEventListener('abort', () => reject(new ToolError('aborted'))),
      )
    }
    if (query.includes('nope')) {
      return replyOf(400, {
        error: 'Invalid column: nope',
        position: query.indexOf('nope'),
        hint: 'did you mean note?',
      })
    }
    if (query === 'wide') {
      const columns = ['w', 'n'].map((name) => ({ name, type: 'STRING' }))
      return replyOf(200, {
        columns,
        dataset: [
          ['日本', 2],
          ['ab', 1],
        ],
        count: 2,
      })
    }
    return replyOf(200, { columns: [{ name: 'a', type: 'INT' }], dataset: [[1]], count: 1 })
  },
  post: async () => replyOf(404, {}),
  close: async () => {},
}

beforeEach(() => {
  sent = []
  shown = ''
  input = new PassThrough()
  const output = Object.assign(new PassThrough(), { columns: 80, rows: 40 })
  output.on('data', (chunk) => {
    shown += String(chunk)
  })
  ended = converse(client, 'table', { url: '' }, { input, output, historyFile })
})
afterEach(async () => {
  input.end()
  await ended
})

const until = (text: string | RegExp) => expect.poll(() => shown).toMatch(text)

describe('the prompt', () => {
  test('takes a statement over several lines, and several ones on a line', async () => {
    input.write('select 1\n')
    await until(/\.\.\. /)
    input.write("  + ';' ; select 2; \n")
    await until(/\(1 row\)[\s\S]*\(1 row\)/)
    expect(sent).toEqual(["select 1\n  + ';'", 'select 2'])
  })

  test('an error shows its line, its place and the suggestion, and the prompt continues', async () => {
    input.write('select a,\n nope from t;\n')
    await until('error: Invalid column: nope')
    expect(shown.replaceAll('\r', '')).toContain('line 2:  nope from t\n         ^\nhint: did you mean note?\n')
    input.write('select 3;\n')
    await until(/\(1 row\)/)
  })

  test('Ctrl-C cancels the statement, and not the tool', async () => {
    input.write('hang;\n')
    await expect.poll(() => sent).toEqual(['hang'])
    input.write('\x03')
    await until('cancelled')
    input.write('select 4;\n')
    await until(/\(1 row\)/)
  })

  test('Ctrl-C clears what was typed', async () => {
    input.write('select\n')
    await until(/\.\.\. /)
    input.write('half of it\x03')
    await until(/\^C/)
    input.write('select 5;\n')
    await until(/\(1 row\)/)
    expect(sent).toEqual(['select 5'])
  })

  test('completes tables, columns, keywords and commands', async () => {
    input.write('select * from tra\t')
    await until(/trades/)
    input.write(' t where t.pri\t')
    await until(/t\.price/)
    input.write(' samp\t')
    await until(/price sample/)
    input.write(';\n')
    await expect.poll(() => sent).toEqual(['select * from trades t where t.price sample'])
    input.write('\\tim\t')
    await until(/\\timing/)
    input.write('\n')
    await until('Timing: on.')
  })

  test('commands change how results are shown, and where they go', async () => {
    input.write('\\x\n')
    await until('A line for each value: on.')
    input.write('select 6;\n')
    await until(/-- 1 --/)
    const file = join(folder, 'result.txt')
    input.write(`\\x off\n\\o ${file}\nselect 7;\n\\o\n`)
    await expect.poll(() => readFileSync(file, 'utf8')).toContain('(1 row)')
    writeFileSync(join(folder, 'script.sql'), 'select 8; -- note\nselect 9')
    input.write(`\\i ${join(folder, 'script.sql')}\n`)
    await expect.poll(() => sent.slice(-2)).toEqual(['select 8', '-- note\nselect 9'])
    input.write('\\nothing\n')
    await until('unknown command')
    input.write('\\i /no/such/file\n')
    await until('no such file: /no/such/file')
    input.write('\\?\n')
    await until(/\\watch \[SECONDS\]/)
  })

  test('\\o saves all rows of queries in the format of the name', async () => {
    const read = (name: string): string => readFileSync(join(folder, name), 'latin1')
    input.write(`\\o ${join(folder, 'all.parquet')}\nselect 1;\nselect 2;\n`)
    await expect.poll(() => read('all.parquet')).toBe('parquet of select 2\n')
    input.write(`\\o ${join(folder, 'all.csv.gz')}\nselect 3; select 4;\n`)
    const all = (): string => gunzipSync(readFileSync(join(folder, 'all.csv.gz'))).toString()
    await until(/10001 rows to .*all.csv.gz[\s\S]*10001 rows to .*all.csv.gz/)
    expect(all()).toBe('csv of select 3\ncsv of select 4\n')
    input.write(`\\o ${join(folder, 'out.xyz')}\n`)
    await until('no format has the ending .xyz: use .csv, ')
    input.write(`\\o ${join(folder, 'none', 'a.csv')}\n`)
    await until('the folder does not exist')
  })

  test('\\i continues an unfinished statement', async () => {
    writeFileSync(join(folder, 'rest.sql'), "where x = 'a';\nselect 16")
    input.write('select 15\n\\i /no/such/file\n')
    await until('no such file: /no/such/file')
    input.write(`\\i ${join(folder, 'rest.sql')}\n`)
    await expect.poll(() => sent).toEqual(["select 15\nwhere x = 'a'", 'select 16'])
    writeFileSync(join(folder, 'bad.sql'), 'select 17;\n\nselect\n nope')
    input.write(`\\i ${join(folder, 'bad.sql')}\n`)
    await until(`${join(folder, 'bad.sql')}, line 4:  nope`)
  })

  test('\\watch repeats the last statement until Ctrl-C', async () => {
    input.write('select 10;\n')
    await until(/\(1 row\)/)
    input.write('\\watch 0.05\n')
    await expect.poll(() => sent.length).toBeGreaterThan(3)
    input.write('\x03')
    input.write('select 11;\n')
    await expect.poll(() => sent.at(-1)).toBe('select 11')
  })

  test('an arrow key brings back a statement of several lines as a whole', async () => {
    input.write('select 13;\n')
    await expect.poll(() => sent.length).toBe(1)
    input.write('select 14\n -- note\n  + 1;\n')
    await expect.poll(() => sent.length).toBe(2)
    input.write('\x1b[A')
    await until('select 14 /* note */ + 1;')
    input.write('\n')
    await expect.poll(() => sent.at(-1)).toBe('select 14 /* note */ + 1')
    input.write('\x1b[A')
    input.write('\x1b[A')
    input.write('\n')
    await expect.poll(() => sent.at(-1)).toBe('select 13')
  })

  test('commands within a statement, and words of other prompts', async () => {
    input.write('select 15\n')
    await until(/\.\.\. /)
    input.write('\\timing\n')
    await until('Timing: on.')
    input.write(' + 1;\n')
    await expect.poll(() => sent).toEqual(['select 15\n + 1'])
    input.write("select '\n\\timing\n';\n")
    await expect.poll(() => sent.at(-1)).toBe("select '\n\\timing\n'")
    input.write('select 16\n\\watch 0.05\n')
    await expect.poll(() => sent.filter((sql) => sql === 'select 16').length).toBeGreaterThan(1)
    input.write('\x03')
    input.write('help\n')
    await until(/\\watch \[SECONDS\]/)
    input.write('exit\n')
    await ended
  })

  test('characters of two columns leave the columns of a table straight', async () => {
    input.write('wide;\n')
    await until('日本 | 2')
    expect(shown.replaceAll('\r', '')).toContain('w    | n\n-----+--\n日本 | 2\nab   | 1\n')
    input.write("select '日本', nope;\n")
    await until('Invalid column: nope')
    expect(shown.replaceAll('\r', '')).toContain(`line 1: select '日本', nope\n${' '.repeat(23)}^\n`)
  })

  test('keeps a history without secrets', async () => {
    input.write("create user a with password 'x';\nselect 12 -- note\n;\n")
    await expect.poll(() => sent.length).toBe(2)
    const history = readFileSync(historyFile, 'utf8')
    expect(history).not.toContain('password')
    expect(history).toContain('select 12 /* note */')
  })
})

describe('completion scripts', () => {
  const commands = [
    {
      name: 'sql',
      description: "run statements: what's given",
      options: [
        { long: '--format', short: '-f', description: 'output [format]', choices: ['table', 'csv'] },
        { long: '--url', short: '', description: 'address', choices: [] },
      ],
    },
    { name: 'start', description: 'run the server', options: [] },
  ]

  test('of bash complete commands, options and their values', () => {
    const script = completionScript('bash', commands)
    const complete = (...words: string[]): string[] => {
      const setUp = `COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}`
      const { stdout } = spawnSync('bash', ['-c', `${script}\n${setUp}; _penstock; echo "\${COMPREPLY[@]}"`], {
        encoding: 'utf8',
      })
      return stdout.trim().split(' ')
    }
    expect(complete('penstock', 's')).toEqual(['sql', 'start'])
    expect(complete('penstock', 'sql', '--')).toEqual(['--format', '--url'])
    expect(complete('penstock', 'sql', '--format', 't')).toEqual(['table'])
  })

  test('of zsh and fish have every command and option', () => {
    const [zsh, fish] = [completionScript('zsh', commands), completionScript('fish', commands)]
    expect(zsh).toContain("'sql:run statements\\: what'\\''s given'")
    expect(zsh).toContain("'--format[output format]:value:(table csv)'")
    expect(fish).toContain("-l format -s f -x -a 'table csv' -d 'output [format]'")
    expect(fish).toContain("-a sql -d 'run statements: what\\'s given'")
  })
})

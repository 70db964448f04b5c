// Goal: the build (deploy/build.js) compiles without checking types, reports the location of a source error, removes
// output of removed sources, renders the documentation, bundles the packages that the published package needs, and
// fails if the published package would lack one. Programs save their compiled code and run with it. Method: builds of a
// small source tree.

import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { programs } from '../../deploy/build-state.js'
import { repositoryRoot } from '../support/docs/source-tree.js'

const home = mkdtempSync(join(tmpdir(), 'penstock-build-'))

function source(path: string, text: string): void {
  mkdirSync(dirname(join(home, path)), { recursive: true })
  writeFileSync(join(home, path), text)
}

function node(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, args, { cwd: home, encoding: 'utf8' })
}

const build = (scope: string): ReturnType<typeof node> => node('deploy/build.js', scope)

beforeAll(() => {
  for (const file of ['build.js', 'build-state.js', 'build-docs.js', 'markdown.js', 'load-program.js']) {
    cpSync(join(repositoryRoot, 'deploy', file), join(home, 'deploy', file), { recursive: true })
  }
  for (const file of ['package.json', 'package-lock.json']) cpSync(join(repositoryRoot, file), join(home, file))
  symlinkSync(join(repositoryRoot, 'node_modules'), join(home, 'node_modules'), 'junction')
  for (const program of programs) source(`${program}.ts`, 'export {}')
  source('README.md', '# Start\n')
  source('docs/README.md', '# Pages\n\n- [Start](../README.md)\n')
})

afterAll(() => rmSync(home, { recursive: true, force: true }))

test('types are removed, not checked; places are those of modules', () => {
  source('engine/place.ts', 'export const place: string = import.meta.url')
  source('deploy/cli.ts', "import { place } from '../engine/place.js'\nconst wrong: number = place\nconsole.log(wrong)")
  const { status, stderr } = build('modules')
  expect(status, stderr).toBe(0)
  expect(node('dist/deploy/cli.js').stdout).toMatch(/\/dist\/engine\/place\.js\n$/)
  expect(existsSync(join(home, 'dist/engine/place.js'))).toBe(true)
})

test('the documentation is rendered, also alone, and what is not closed is an error with its place', () => {
  source('docs/one.md', '# One\n\nSee `a|b` and [the list](README.md#pages).\n')
  expect(build('docs').status).toBe(0)
  const page = readFileSync(join(home, 'dist/docs/one.html'), 'utf8')
  expect(page).toContain('<p>See <code>a|b</code> and <a href="index.html#pages">the list</a>.</p>')
  source('docs/one.md', '# One\n\n```sql\nSELECT 1\n')
  const { status, stderr } = build('docs')
  expect(status).toBe(1)
  expect(stderr).toContain('a block is not closed [file=docs/one.md, line=3]')
  rmSync(join(home, 'docs/one.md'))
})

test('what an earlier build wrote is removed with its source, or when programs alone are wanted', () => {
  source('test/old/one.ts', 'export const one = 1')
  expect(build('modules').status).toBe(0)
  expect(existsSync(join(home, 'dist/test/old/one.js'))).toBe(true)
  rmSync(join(home, 'test/old'), { recursive: true })
  expect(build('modules').status).toBe(0)
  expect(existsSync(join(home, 'dist/test'))).toBe(false)
  expect(existsSync(join(home, 'dist/engine/place.js'))).toBe(true)
  expect(build('programs').status).toBe(0)
  expect(readdirSync(join(home, 'dist/engine'))).toEqual(['threads'])
  expect(node('dist/deploy/cli.js').status).toBe(0)
})

test.each([
  ['engine/broken.ts', 'modules'],
  ['deploy/cli.ts', 'programs'],
])('a mistake in %s has its place, and nothing counts as built', (path, scope) => {
  source(path, 'const one = 1\nconst two = = 2\n')
  const { status, stderr } = build(scope)
  expect(status).toBe(1)
  expect(stderr).toContain(`${path}:2:13`)
  expect(stderr).not.toContain('deploy/build.js')
  expect(existsSync(join(home, 'dist/.built'))).toBe(false)
  rmSync(join(home, path))
})

test('what is required of a package that is not installed beside Penstock is packed, with its licence', () => {
  source(
    'deploy/cli.ts',
    "import { createRequire } from 'node:module'\nconst require = createRequire(import.meta.url)\nconst { parse } = require('csv-parse/sync')\nconsole.log(parse('a,b'))",
  )
  expect(build('programs').status).toBe(0)
  rmSync(join(home, 'node_modules'))
  expect(node('dist/deploy/cli.js').stdout).toContain("[ [ 'a', 'b' ] ]")
  symlinkSync(join(repositoryRoot, 'node_modules'), join(home, 'node_modules'), 'junction')
  const { stdout } = node('-p', "require('fs').readFileSync('dist/THIRD-PARTY-LICENSES.txt', 'utf8')")
  expect(stdout).toMatch(/^csv-parse [\d.]+: MIT$/m)
})

test('an import that a published Penstock would not find fails the build', () => {
  source('deploy/cli.ts', "import { parse } from 'csv-parse'\nconsole.log(parse)")
  const { status, stderr } = build('programs')
  expect(status).toBe(1)
  expect(stderr).toContain('dist/deploy/cli.js needs csv-parse, which is neither among the dependencies nor packed')
})

test('compiled code is saved in $CACHE_DIRECTORY where dist/ cannot be written, or not at all', () => {
  source('deploy/cli.ts', 'console.log(5)')
  expect(build('programs').status).toBe(0)
  const cache = join(home, 'cache')
  mkdirSync(cache)
  chmodSync(home, 0o755)
  chmodSync(cache, 0o777)
  chmodSync(join(home, 'dist'), 0o555)
  // Root may write everywhere.
  const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  const start = (env: NodeJS.ProcessEnv): ReturnType<typeof node> =>
    spawnSync(process.execPath, ['dist/deploy/cli.js'], { cwd: home, encoding: 'utf8', env, ...nobody })
  const saved = (): string[] =>
    readdirSync(cache, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.bin'))
  try {
    for (let round = 0; round < 2; round++) {
      expect(start({})).toMatchObject({ status: 0, stdout: '5\n', stderr: '' })
      expect(start({ CACHE_DIRECTORY: join(home, 'missing') })).toMatchObject({ status: 0, stdout: '5\n', stderr: '' })
      expect(saved()).toEqual([])
    }
    for (let round = 0; round < 2; round++) {
      expect(start({ CACHE_DIRECTORY: cache })).toMatchObject({ status: 0, stdout: '5\n', stderr: '' })
      expect(saved()).toHaveLength(1)
    }
    expect(existsSync(join(home, 'dist/.code'))).toBe(false)
  } finally {
    chmodSync(join(home, 'dist'), 0o755)
  }
})

test('a program that ends well saves its compiled code, and runs with it', () => {
  const codes = (): string[] =>
    existsSync(join(home, 'dist/.code'))
      ? readdirSync(join(home, 'dist/.code'), { recursive: true, encoding: 'utf8' }).filter((path) =>
          path.endsWith('.bin'),
        )
      : []
  source('engine/two.ts', 'export function two(): number { return 2 }\nexport const three = 3')
  const later = "import('../engine/two.js').then(({ two, three }) => console.log(one() + two() + three))"
  source(
    'deploy/cli.ts',
    `function one(): number { return 1 }\nif (process.argv[2] === 'fail') process.exit(3)\n${later}`,
  )
  expect(build('programs').status).toBe(0)
  expect(codes()).toEqual([])
  expect(node('dist/deploy/cli.js', 'fail').status).toBe(3)
  expect(node('dist/deploy/cli.js').stdout).toBe('6\n')
  const saved = codes()
  // The command, and what it loads on demand; nothing of the one that failed.
  expect(saved.filter((path) => path.includes('deploy-cli-other'))).toHaveLength(saved.length)
  expect(saved.length).toBeGreaterThanOrEqual(2)
  // What is not the code of this script and this V8 is compiled.
  for (const path of saved) writeFileSync(join(home, 'dist/.code', path), 'not code')
  expect(node('dist/deploy/cli.js').stdout).toBe('6\n')
  expect(node('--heap-growing-percent=50', 'dist/deploy/cli.js').stdout).toBe('6\n')
  // V8 takes the code of another script of the same length for this one's, so one can see whose code runs.
  const run = (text: string): { output: string; code: string } => {
    source('deploy/cli.ts', text)
    expect(build('programs').status).toBe(0)
    expect(codes()).toEqual([])
    const { stdout } = node('dist/deploy/cli.js')
    return { output: stdout, code: join(home, 'dist/.code', codes()[0] ?? '') }
  }
  const first = run('console.log(1)')
  const code = readFileSync(first.code)
  const second = run('console.log(2)')
  writeFileSync(second.code, code)
  expect([first.output, second.output, node('dist/deploy/cli.js').stdout]).toEqual(['1\n', '2\n', '1\n'])
})

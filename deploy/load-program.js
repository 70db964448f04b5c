// Loads a program from its scripts in dist/packed/, and keeps what V8 compiled of them for the next start, which then
// takes two thirds of the time. Each thread loads its own program. Plain JavaScript: the build copies it to dist/.
//
//   dist/.code/<version of V8 and its flags>/<program>/<script>.bin     compiled code of the functions that ran
//
// Where dist/ cannot be written, as in a package of the system, the folder is `penstock-code` in $CACHE_DIRECTORY, which
// systemd sets for a service with CacheDirectory=. Names of scripts contain a hash of their text, so builds may share it.
//
// A program saves its code when it ends cleanly within minutes: V8 drops the code of functions that have not run for
// long. A folder that cannot be written, a kill and a full disk only mean that the next start compiles again. Node
// keeps compiled code itself only from version 22 on (node:module, enableCompileCache); its variable
// NODE_DISABLE_COMPILE_CACHE turns this off as well.

import {
  accessSync,
  closeSync,
  existsSync,
  constants as fileConstants,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { cachedDataVersionTag } from 'node:v8'
import { constants, Script } from 'node:vm'
import { threadId } from 'node:worker_threads'

const dist = dirname(dirname(fileURLToPath(import.meta.url)))

/** Age in seconds of a process up to which its code is saved. */
const ageMax = 600

/** Modules by path. */
const modules = new Map()
/** Scripts that were compiled without saved code, by the path where it belongs. */
const compiled = new Map()

/**
 * Runs the script `path` of dist/ and returns its exports. `program` names the folder of the saved code. Scripts are
 * in ASCII and get what a CommonJS module gets, and the URL of their file.
 */
export function loadProgram(path, program) {
  const keeps = !process.env.NODE_DISABLE_COMPILE_CACHE
  const version = cachedDataVersionTag()
  const folder = keeps ? join(codeFolder(), version.toString(16), program) : null
  // Flags that were changed since would be part of the code's version.
  if (folder !== null) process.once('exit', (code) => code === 0 && cachedDataVersionTag() === version && save())
  return load(join(dist, path), folder)
}

/** Where compiled code is read, and saved if it can be written. */
function codeFolder() {
  const own = join(dist, '.code')
  const [cache = ''] = (process.env.CACHE_DIRECTORY ?? '').split(':')
  return cache === '' || isWritable(own) || isWritable(dist) ? own : join(cache, 'penstock-code')
}

function isWritable(path) {
  try {
    accessSync(path, fileConstants.W_OK)
    return true
  } catch {
    return false
  }
}

function load(file, folder) {
  const known = modules.get(file)
  if (known !== undefined) return known.exports
  const module = { exports: {} }
  modules.set(file, module)
  const run = compile(file, folder).runInThisContext()
  const own = createRequire(file)
  const require = (id) => (id.startsWith('.') && id.endsWith('.cjs') ? load(join(dirname(file), id), folder) : own(id))
  run.call(module.exports, module.exports, Object.assign(require, own), module, pathToFileURL(file).href)
  return module.exports
}

function compile(file, folder) {
  const code = folder === null ? null : join(folder, `${relative(dist, file).replaceAll(/\W+/g, '-')}.bin`)
  const cachedData = code === null ? undefined : readOrNone(code)
  const source = `(function (exports, require, module, scriptUrl) {${readFileSync(file, 'latin1')}\n})`
  const importModuleDynamically = constants.USE_MAIN_CONTEXT_DEFAULT_LOADER
  const script = new Script(source, { filename: file, cachedData, importModuleDynamically })
  if (code !== null && cachedData === undefined) compiled.set(code, script)
  return script
}

function readOrNone(file) {
  try {
    return readFileSync(file)
  } catch {
    return undefined
  }
}

function save() {
  if (process.uptime() > ageMax) return
  try {
    for (const [file, script] of compiled) {
      mkdirSync(dirname(file), { recursive: true })
      if (!existsSync(file)) writeWhole(file, script.createCachedData())
    }
  } catch {
    // The next start compiles.
  }
}

/** V8 does not check the bytes of saved code, so a power cut must leave all of them or no file. */
function writeWhole(file, bytes) {
  const temporary = `${file}.${process.pid}-${threadId}`
  try {
    const handle = openSync(temporary, 'w')
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(handle, bytes, at)
      fsyncSync(handle)
    } finally {
      closeSync(handle)
    }
    renameSync(temporary, file)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}

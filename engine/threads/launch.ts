// How a worker comes to life: it is launched, loads its code, and waits for what it is to work with. So a program can
// launch workers before it knows that, and load its own code meanwhile: half of the time of a start is loading.
//
// The worker sleeps on one word of its own (workerData) until its data was posted, and takes it without a turn of its
// event loop. Imports nothing of the engine's, since it is loaded before everything else.

import { type MessagePort, receiveMessageOnPort, Worker, workerData } from 'node:worker_threads'
import { compiledModule } from '../base/module-url.js'

interface Launched {
  readonly worker: Worker
  /** 1 when the data was posted. */
  readonly told: Int32Array
}

/** Launched ahead and not yet told what to do, by module. They keep no process alive. */
const ahead = new Map<string, Launched>()

/** Launches a worker from a module beside this one for the next `startWorker` of the same module. */
export function launchAhead(module: string): void {
  const launched = launch(module)
  launched.worker.unref()
  ahead.set(module, launched)
}

/** A worker from a module beside this one, told what to work with. */
export function startWorker(module: string, data: unknown, transfer: readonly MessagePort[]): Worker {
  const { worker, told } = ahead.get(module) ?? launch(module)
  if (ahead.delete(module)) worker.ref()
  worker.postMessage(data, transfer)
  Atomics.store(told, 0, 1)
  Atomics.notify(told, 0)
  return worker
}

function launch(module: string): Launched {
  const told = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  return {
    worker: new Worker(compiledModule(import.meta.url, `./${module}`), { workerData: told, execArgv: [] }),
    told,
  }
}

/** From inside a worker: what it was told, as soon as it was. Blocks; `port` is its line to who launched it. */
export function awaitData(port: MessagePort): unknown {
  Atomics.wait(workerData as Int32Array, 0, 0)
  return (receiveMessageOnPort(port) as { readonly message: unknown }).message
}

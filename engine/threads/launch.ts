// Starts worker threads in two steps: a worker is launched, loads its code, and then waits for its data. So a program
// can launch workers before it has their data, and load its own code in parallel, which halves the time of a start.
//
// Workers with a loop of their own (thread.ts), such as the writer and the query threads, call awaitData(). It blocks
// on a word of shared memory until the data has been posted, and then takes the data without returning to the event
// loop. Other workers get their data as the first message event. This file is loaded first, so it imports only what it
// needs to find a module.

import { type MessagePort, receiveMessageOnPort, Worker, workerData } from 'node:worker_threads'
import { compiledModule } from '../base/module-url.js'

interface Launched {
  readonly worker: Worker
  /** 1 when the data was posted. */
  readonly assigned: Int32Array
}

/** Workers launched ahead that have no data yet, by module. They do not keep the process alive. */
const ahead = new Map<string, Launched>()

/** Launches a worker from a module in this folder, for the next `startWorker` of the same module. */
export function launchAhead(module: string): void {
  const launched = launch(module)
  launched.worker.unref()
  ahead.set(module, launched)
}

/** Starts a worker from a module in this folder with its data; uses one that was launched ahead. */
export function startWorker(module: string, data: unknown, transfer: readonly MessagePort[]): Worker {
  const { worker, assigned } = ahead.get(module) ?? launch(module)
  if (ahead.delete(module)) worker.ref()
  worker.postMessage(data, transfer)
  Atomics.store(assigned, 0, 1)
  Atomics.notify(assigned, 0)
  return worker
}

function launch(module: string): Launched {
  const assigned = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  return {
    worker: new Worker(compiledModule(import.meta.url, `./${module}`), { workerData: assigned, execArgv: [] }),
    assigned,
  }
}

/** Called inside a worker: blocks until the data was posted to `port`, and returns it. */
export function awaitData(port: MessagePort): unknown {
  Atomics.wait(workerData as Int32Array, 0, 0)
  return (receiveMessageOnPort(port) as { readonly message: unknown }).message
}

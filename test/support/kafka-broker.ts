// Starts a real Apache Kafka for tests and benchmarks: one broker in KRaft mode in its own process, from jars of Maven
// Central, which are fetched on first use. Needs Java and Maven.

import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const startMs = 90_000

export interface BrokerOptions {
  readonly version: string
  readonly port: number
  /** Further lines of server.properties; `{folder}` stands for the broker's folder. */
  readonly properties?: readonly string[]
  /** Instead of PLAINTEXT: the name of the protocol that clients use. */
  readonly protocol?: 'SSL' | 'SASL_PLAINTEXT' | 'SASL_SSL'
  /** Arguments of the storage tool: users of SCRAM. */
  readonly formatArguments?: readonly string[]
}

/** Whether there is what a broker needs. */
export function canRunKafka(): boolean {
  return ['java', 'mvn'].every((command) => spawnSync(command, ['-version'], { stdio: 'ignore' }).status === 0)
}

export class KafkaBroker {
  readonly folder = mkdtempSync(join(tmpdir(), 'penstock-kafka-'))
  readonly address: string
  readonly #options: BrokerOptions
  #child: ChildProcess | null = null

  constructor(options: BrokerOptions) {
    this.#options = options
    this.address = `127.0.0.1:${options.port}`
  }

  async start(): Promise<void> {
    const properties = join(this.folder, 'server.properties')
    if (!existsSync(properties)) this.#format(properties)
    const output = openSync(join(this.folder, 'output.log'), 'a')
    this.#child = spawn('java', ['-Xmx512m', '-cp', this.#classPath, 'kafka.Kafka', properties], {
      stdio: ['ignore', output, output],
    })
    const end = performance.now() + startMs
    while (!(await answers(this.#options.port))) {
      if (this.#child.exitCode !== null || performance.now() > end) throw new Error(`no broker: ${this.#log}`)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  async stop(): Promise<void> {
    const child = this.#child
    if (child === null || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }

  /** Stops the broker and removes its data. */
  async remove(): Promise<void> {
    await this.stop()
    rmSync(this.folder, { recursive: true, force: true })
  }

  get #classPath(): string {
    return join(jars(this.#options.version), '*')
  }

  get #log(): string {
    return readFileSync(join(this.folder, 'output.log'), 'utf8').slice(-2000)
  }

  #format(path: string): void {
    const { port, protocol = 'PLAINTEXT', properties = [], formatArguments = [] } = this.#options
    const lines = [
      'process.roles=broker,controller',
      'node.id=1',
      `controller.quorum.voters=1@127.0.0.1:${port + 1}`,
      `listeners=CLIENT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${port + 1}`,
      `advertised.listeners=CLIENT://127.0.0.1:${port}`,
      'controller.listener.names=CONTROLLER',
      'inter.broker.listener.name=CLIENT',
      `listener.security.protocol.map=CONTROLLER:PLAINTEXT,CLIENT:${protocol}`,
      `log.dirs=${join(this.folder, 'data')}`,
      'offsets.topic.replication.factor=1',
      'transaction.state.log.replication.factor=1',
      'transaction.state.log.min.isr=1',
      'group.initial.rebalance.delay.ms=0',
      ...properties.map((line) => line.replaceAll('{folder}', this.folder)),
    ]
    writeFileSync(path, `${lines.join('\n')}\n`)
    const format = ['format', '-t', 'AAAAAAAAAAAAAAAAAAAAAA', '-c', path, ...formatArguments]
    execFileSync('java', ['-Xmx256m', '-cp', this.#classPath, 'kafka.tools.StorageTool', ...format], {
      stdio: 'ignore',
    })
  }
}

/** The folder with the jars of the version; fetched at first use. */
function jars(version: string): string {
  const folder = join(tmpdir(), `penstock-kafka-jars-${version}`)
  if (existsSync(join(folder, 'lib'))) return join(folder, 'lib')
  mkdirSync(folder, { recursive: true })
  const dependency = `<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>${version}</version></dependency>`
  const head =
    '<modelVersion>4.0.0</modelVersion><groupId>peer</groupId><artifactId>peer</artifactId><version>1</version>'
  writeFileSync(join(folder, 'pom.xml'), `<project>${head}<dependencies>${dependency}</dependencies></project>`)
  const goal = ['dependency:copy-dependencies', '-DoutputDirectory=fetched']
  execFileSync('mvn', ['-q', '-B', '-f', join(folder, 'pom.xml'), ...goal], { stdio: 'ignore' })
  renameSync(join(folder, 'fetched'), join(folder, 'lib'))
  return join(folder, 'lib')
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    const end = (answer: boolean): void => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('connect', () => end(true))
    socket.once('error', () => end(false))
  })
}

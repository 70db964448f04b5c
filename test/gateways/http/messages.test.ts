// Goal: the server's own request and response classes, derived from those of node:http, save work: the head and body of
// a short response are one write, and a request without a body emits no events when it ends. In everything else they
// behave like those of node:http.

import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { HttpRequest, HttpResponse } from '../../../gateways/http/messages.js'
import { reply } from '../../../gateways/http/replies.js'

interface Talk {
  /** What the server passed to the socket, call by call. */
  readonly written: string[]
  readonly received: string
}

async function talk(
  sent: string,
  until: RegExp,
  serve: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<Talk> {
  const server = createServer(
    { IncomingMessage: HttpRequest, ServerResponse: HttpResponse, keepAliveTimeout: 0 },
    serve,
  )
  const written: string[] = []
  server.on('connection', (socket) => {
    const write = socket.write.bind(socket)
    socket.write = (chunk: string, ...rest: []) => {
      written.push(chunk)
      return write(chunk, ...rest)
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  onTestFinished(() => {
    client.destroy()
    server.close()
  })
  client.write(sent)
  let received = ''
  for await (const chunk of client) {
    received += (chunk as Buffer).toString('utf8')
    if (until.test(received)) break
  }
  return { written, received }
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`

test('head and body of a short response are one write', async () => {
  const { written, received } = await talk(get('/'), /\{"é":1\}/, (_request, response) => {
    response._keepAliveTimeout = 7000
    reply(response, 200, 'application/json', '{"é":1}')
  })
  expect(written).toHaveLength(1)
  expect(received).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  expect(received).toMatch(/\r\nKeep-Alive: timeout=7\r\n/)
  expect(received).toMatch(/\r\nContent-Length: 8\r\n/)
  expect(received).toMatch(/\r\n\r\n\{"é":1\}$/)
})

test('pipelined requests are answered in their order', async () => {
  const answers = await talk(get('/1') + get('/2') + get('/3'), /body3/, (request, response) => {
    const number = Number(request.url?.slice(1))
    setTimeout(() => reply(response, 200, 'text/plain', `body${number}`), 60 - 20 * number)
  })
  expect([...answers.received.matchAll(/body(\d)/g)].map(([, number]) => number)).toEqual(['1', '2', '3'])
})

test('HEAD has the length and no body', async () => {
  const head = 'HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
  const { received } = await talk(head, /\r\n\r\n/, (_request, response) => reply(response, 200, 'text/plain', 'body'))
  expect(received).toMatch(/\r\nContent-Length: 4\r\n/)
  expect(received).toMatch(/\r\n\r\n$/)
})

test('a body that nobody reads is discarded, and the next request is answered', async () => {
  const post = `POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n${'x'.repeat(300_000)}`
  const { received } = await talk(post + get('/b'), /body\/b/, (request, response) => {
    reply(response, 200, 'text/plain', `body${request.url}`)
  })
  expect(received).toContain('body/a')
})

test('a request without a body reports no end', async () => {
  const events: string[] = []
  await talk(get('/1') + get('/2'), /body\/2/, (request, response) => {
    request.on('close', () => events.push('close'))
    response.on('close', () => events.push('response'))
    reply(response, 200, 'text/plain', `body${request.url}`)
  })
  expect(events).toEqual(['response', 'response'])
})

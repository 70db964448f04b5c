// Goal: if the HTTP server rejects a large request before it has received all of it, a client that reads only after
// sending everything still gets the response, and its connection stays open unless the client has asked to close it.

import type { Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { connectTo, type TestGateway, testHttp, until } from '../../support/gateway.js'

const bodyBytes = 24 * 1024 * 1024
const chunk = Buffer.alloc(64 * 1024, 'x')

let gateway: TestGateway

beforeEach(async () => {
  gateway = await testHttp({ importExpandedBytesMax: 1024 })
})
afterEach(() => gateway.close())

/** Sends all of it, then reads. */
async function send(socket: Socket, head: string, opening: string): Promise<void> {
  socket.write(`${head}\r\nHost: x\r\nContent-Length: ${bodyBytes}\r\n\r\n${opening}`)
  for (let left = bodyBytes - opening.length; left > 0; left -= chunk.length) {
    if (!socket.write(chunk.subarray(0, left))) await new Promise((resolve) => socket.once('drain', resolve))
  }
}

const part = '--zz\r\nContent-Disposition: form-data; name="data"; filename="r.csv"\r\n\r\n'

test.each([
  ['POST /exec HTTP/1.1\r\nContent-Type: application/json', '{"query": "', 413, 'request body is too large'],
  ['PUT /settings?version=0 HTTP/1.1', '{', 413, 'request body is too large'],
  ['POST /write HTTP/1.1', 'a ', 413, 'request body is too large'],
  ['POST /imp?name=a%2Ab HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=zz', part, 400, 'invalid table name'],
])('%s', async (head, opening, status, words) => {
  const socket = await connectTo(gateway.port)
  socket.pause()
  let closed = false
  socket.once('close', () => {
    closed = true
  })
  await send(socket, head, opening)
  let text = ''
  socket.on('data', (bytes) => {
    text += bytes.toString('latin1')
  })
  socket.resume()
  await until(() => closed || text.includes(words))
  expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  socket.write('GET /ping HTTP/1.1\r\nHost: x\r\n\r\n')
  await until(() => closed || text.includes('HTTP/1.1 204 '))
  expect(closed).toBe(false)
  socket.destroy()
})

test('a connection that ends with the answer stays until everything has come', async () => {
  const socket = await connectTo(gateway.port)
  const errors: unknown[] = []
  socket.on('error', (error) => errors.push(error))
  let text = ''
  let ended = false
  socket.on('end', () => {
    ended = true
  })
  socket.pause()
  await send(socket, 'POST /write HTTP/1.1\r\nConnection: close', 'a ')
  socket.on('data', (bytes) => {
    text += bytes.toString('latin1')
  })
  socket.resume()
  await until(() => ended || errors.length > 0)
  expect(errors).toEqual([])
  expect(text).toMatch(/^HTTP\/1.1 413 /)
  expect(text).toContain('request body is too large')
  await until(() => socket.destroyed)
})

// The server of health checks: 200 OK whatever the path, 500 when the flag says so. Nothing is logged.

import { createServer, type Server } from 'node:http'

/** Word of the shared flag: not 0 once the main server is unhealthy. */
export const unhealthyWord = 0

export function healthServer(flag: Int32Array): Server {
  return createServer((request, response) => {
    request.resume()
    const healthy = Atomics.load(flag, unhealthyWord) === 0
    const body = healthy ? 'OK' : 'unhandled errors occurred'
    response.writeHead(healthy ? 200 : 500, ['Content-Type', 'text/plain', 'Content-Length', String(body.length)])
    response.end(body)
  })
}

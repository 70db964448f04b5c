// An S3 service in the memory of a process of its own, for the benchmark of the lake: so its processor time is not that of
// the server. Prints how it is reached, as JSON.

import { openS3Service } from '../support/s3-service.js'

const { endpoint, bucket, accessKeyId, secretAccessKey } = await openS3Service()
process.stdout.write(`${JSON.stringify({ endpoint, bucket, accessKeyId, secretAccessKey })}\n`)

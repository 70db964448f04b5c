// An S3 service for the benchmark of the lake (suite-lake.ts). It keeps objects in memory and runs as a separate
// process, so its processor time is not counted as that of the server. Prints endpoint, bucket and access keys as JSON.

import { openS3Service } from '../support/lake/s3-service.js'

const { endpoint, bucket, accessKeyId, secretAccessKey } = await openS3Service()
process.stdout.write(`${JSON.stringify({ endpoint, bucket, accessKeyId, secretAccessKey })}\n`)

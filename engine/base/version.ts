// The version of this product as a constant. A test compares it with package.json, which is not installed beside every
// compiled server.

export const productVersion = '0.1.0'

// The parts of the S3 client in use, loaded lazily as one module: once bundled, a CommonJS package has no named exports
// under `import()`.
export { DeleteObjectCommand, GetObjectCommand, HeadObjectCommand, NotFound, S3Client } from '@aws-sdk/client-s3';
export { Upload } from '@aws-sdk/lib-storage';

// What is used of the S3 client, loaded late as one module: once bundled, the `import()` of a CommonJS package has no names.
export { DeleteObjectCommand, HeadObjectCommand, NotFound, S3Client } from '@aws-sdk/client-s3';
export { Upload } from '@aws-sdk/lib-storage';

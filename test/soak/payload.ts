import { createHash, randomBytes } from 'node:crypto';

export const UPLOAD_BYTES = 64 * 1024;
export const DOWNLOAD_BYTES = 1024 * 1024;

const OFFSETS = 64 * 1024;
const NOISE = randomBytes(DOWNLOAD_BYTES + OFFSETS);

/** Both ends cut their bodies from the same noise, so that a body that belongs to another request is told apart. */
export function payloadFrom(offset: number, bytes: number): Buffer {
  return NOISE.subarray(offset, offset + bytes);
}

export function randomOffset(): number {
  return Math.floor(Math.random() * OFFSETS);
}

export function digestOf(body: Buffer): string {
  return createHash('sha256').update(body).digest('hex');
}

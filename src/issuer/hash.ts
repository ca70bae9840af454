import type { CommandContext } from '../config/command.ts';
import { SidecarError } from '../platform/errors.ts';
import { hashSecret } from './secret-hashing.ts';

/** Longer input was piped in by mistake. */
const MAX_SECRET_BYTES = 64 * 1024;

/**
 * Takes the secret from standard input: a command line shows in the process list and the shell's history.
 * @throws {SidecarError} `usage` if there is no secret, or it is no UTF-8 text.
 */
export async function printSecretHash({
  stdin,
  stdout,
}: Pick<CommandContext, 'stdin' | 'stdout'>): Promise<number> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > MAX_SECRET_BYTES) {
      throw new SidecarError(
        'usage',
        `the secret on standard input is larger than ${MAX_SECRET_BYTES} bytes`,
      );
    }
  }
  const secret = decode(Buffer.concat(chunks)).replace(/\r?\n$/, '');
  if (secret === '') throw new SidecarError('usage', 'there is no secret on standard input');
  stdout.write(`${await hashSecret(secret)}\n`);
  return 0;
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new SidecarError('usage', 'the secret on standard input is not UTF-8 text', { cause });
  }
}

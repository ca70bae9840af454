import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

const DOCKERFILE = join(import.meta.dirname, '../../Dockerfile');

/** How the image runs Node: what is measured is what is shipped. */
export interface ShippedNode {
  readonly flags: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Reads the flags of ENTRYPOINT and the variables that change how Node runs from the Dockerfile. */
export async function readShippedNode(): Promise<ShippedNode> {
  const text = await readFile(DOCKERFILE, 'utf8');
  const entrypoint: unknown = JSON.parse(/^ENTRYPOINT (\[.*\])$/m.exec(text)?.[1] ?? 'null');
  if (!Array.isArray(entrypoint) || entrypoint[0] !== 'node') {
    throw new Error('the Dockerfile has no ENTRYPOINT ["node", …] to take flags from');
  }
  const variables = text.matchAll(/\b(NODE_ENV|MALLOC_[A-Z_]+)=(\S+)/g);
  return {
    flags: entrypoint.slice(1).filter((argument) => argument.startsWith('--')),
    env: Object.fromEntries([...variables].map(([, name, value]) => [name, value])),
  };
}

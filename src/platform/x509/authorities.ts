import { X509Certificate } from 'node:crypto';
import { blocksOf } from './pem.ts';

/** The bundle as given, or what is wrong with it. */
export function parseAuthorities(pem: string): { readonly pem: string } | string {
  const blocks = blocksOf(pem);
  if (blocks.length === 0) return 'it holds no PEM certificate';
  try {
    const others = blocks.filter((block) => !new X509Certificate(block).ca);
    return others.length === 0 ? { pem } : 'it holds a certificate that is not of a CA';
  } catch {
    return 'it holds a PEM certificate that cannot be read';
  }
}

/** A service mesh's redirection, which takes the same connections to its own proxy. */

import { FLAGS, type Message, NFT, nftMessage, textIn } from './netlink-message.ts';

const TABLE_NAME = 1;
const CHAIN_NAME = 3;

/** Chains of iptables and tables of nftables, by which meshes are recognized. */
const MESHES: readonly (readonly [mesh: string, names: RegExp])[] = [
  ['Istio', /^(?:ISTIO_|istio)/],
  ['Linkerd', /^(?:PROXY_INIT_|linkerd)/],
];

/** Every chain of nftables, usually including those of iptables. */
export const ALL_CHAINS: Message = nftMessage(NFT.getChain, FLAGS.request | FLAGS.dump, 0, 'to list chains');

/** @param chains the kernel's description of each. */
export function meshOfChains(chains: readonly { readonly body: Buffer }[]): string | undefined {
  return meshOfNames(chains.flatMap(({ body }) => [textIn(body, TABLE_NAME), textIn(body, CHAIN_NAME)]));
}

export function meshOfNames(names: readonly (string | undefined)[]): string | undefined {
  return MESHES.find(([, known]) => names.some((name) => name !== undefined && known.test(name)))?.[0];
}

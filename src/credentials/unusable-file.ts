/** A file that a grant needs cannot be used now. The message names the file and may be shown: it holds nothing of it. */
export class UnusableFile extends Error {}

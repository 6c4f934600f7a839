import { sha256 } from '#key';

/** Of each slot: four words of a hash, and the number that came with it, one higher so that 0 says "free". */
const WORDS = 5;

/**
 * Who was the first with an identity. A million of them take 40 MB as numbers in one array; as texts in a Map it would be
 * several times that. Two identities whose hashes agree in 128 bits would be taken for one: nobody can make such a pair.
 */
export class FirstSeen {
  private slots = new Uint32Array(1024 * WORDS);
  private count = 0;

  /** The number that came with this identity before, or null if this is the first time. */
  add(identity: string, number: number): number | null {
    if (this.count * 2 * WORDS >= this.slots.length) this.widen();
    const digest = sha256(identity);
    const words = [0, 4, 8, 12].map((at) => digest.readUInt32BE(at));
    const at = this.find(words);
    const first = this.slots[at + 4] ?? 0;
    if (first !== 0) return first - 1;
    this.slots.set([...words, number + 1], at);
    this.count++;
    return null;
  }

  /** Where these words are, or the free slot in which they would be. */
  private find(words: readonly number[]): number {
    const capacity = this.slots.length / WORDS;
    for (let slot = (words[0] ?? 0) % capacity; ; slot = (slot + 1) % capacity) {
      const at = slot * WORDS;
      if (this.slots[at + 4] === 0 || words.every((word, offset) => this.slots[at + offset] === word)) return at;
    }
  }

  private widen(): void {
    const old = this.slots;
    this.slots = new Uint32Array(old.length * 2);
    for (let at = 0; at < old.length; at += WORDS)
      if (old[at + 4] !== 0) {
        const slot = old.subarray(at, at + WORDS);
        this.slots.set(slot, this.find([...slot.subarray(0, 4)]));
      }
  }
}

//! What is asked of the model, and what is taken from its answers.

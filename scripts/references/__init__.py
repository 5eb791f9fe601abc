"""Reference values of the Gaussian interaction of two neurons, to 30 digits, by routes of their own.

For (x, y) ~ N(0, [[q₁₁, q₁₂], [q₁₂, q₂₂]]) with q₁₁ = r₁², q₂₂ = r₂², q₁₂ = r₁ r₂ u, the interaction is

    G(q₁₁, q₁₂, q₂₂) = E[s₁(x) s₂(y)].

The Gaussian density p solves the heat equations ∂p/∂q₁₁ = ½ ∂²p/∂x², ∂p/∂q₁₂ = ∂²p/∂x∂y, ∂p/∂q₂₂ = ½
∂²p/∂y² (Price's theorem: Price 1958, IRE Trans. Inf. Theory 4, 69-72; Simsek et al. 2023, Lemma F.1), so
that by parts, with sᵃ the a-th derivative in the sense of distributions,

    ∂₁₁G = ½ E[s₁²s₂⁰]      ∂₁₂G = E[s₁¹s₂¹]         ∂₂₂G = ½ E[s₁⁰s₂²]
    ∂₁₁∂₁₁G = ¼ E[s₁⁴s₂⁰]   ∂₁₁∂₁₂G = ½ E[s₁³s₂¹]    ∂₁₂∂₁₂G = E[s₁²s₂²]
    ∂₁₂∂₂₂G = ½ E[s₁¹s₂³]   ∂₂₂∂₂₂G = ¼ E[s₁⁰s₂⁴]

(∂₁₁∂₂₂G = ¼ E[s₁²s₂²] is a quarter of ∂₁₂∂₁₂G). Every E[s₁ᵃ s₂ᵇ] comes from one of three routes, none of
which uses a closed form of G:

*Moments.* Two polynomials: E[xⁱyʲ] by Isserlis' theorem in exact rational arithmetic. A float64 is a
rational number, hence the result is exact until it is rounded to 30 digits.

*Line.* s₁ is erf, relu, abs, gelu or a polynomial, whose smoothing Cₐ(m, σ) = E[s₁ᵃ(m + σz)], z ~ N(0, 1),
is elementary. With y = r₂t and x | t ~ N(r₁ut, r₁²(1 - u²)),

    E[s₁ᵃ s₂ᵇ] = ∫ φ(t) s₂ᵇ(r₂t) Cₐ(r₁ut, r₁√(1-u²)) dt,

by the trapezoid rule after t = ±exp(v - e^(v₀-v)) on each half-line. In v = log t the integrand is analytic
in |Im v| < π/4 whatever the scales are (φ, erf and tanh of a multiple of t are bounded in that sector), so
that the error is exp(-π²/2h) for the step h, down to the scale e^v₀ below which nothing happens and the map
is made to decay doubly exponentially (Takahasi & Mori 1974). Kinks sit at t = 0, the end of both
half-lines. Where s₂ is relu or abs, s₂² is a multiple k of δ, and with κ = r₁u/r₂ and p the density of y,

    E[s₁ᵃ δ⁽ⁿ⁾(y)] = (-1)ⁿ dⁿ/dyⁿ [p(y) Cₐ(κy, σ)] at y = 0,    with Cₐ' = Cₐ₊₁.

*Lattice.* Two functions of the logistic family, built on T = tanh or its primitive L = log 2cosh. T is
replaced by Σₙ (-1)ⁿ T(x - nH), which equals T(x) up to e^(-2(H-|x|)) and has, by Poisson summation, the
Fourier series

    Σⱼ cⱼ sin ωⱼx,   ωⱼ = (2j + 1)π/H,   cⱼ = (2π/H) / sinh(πωⱼ/2),

and L by its primitive. Then E[sin ωx sin νy] = e^(-(q₁₁ω² + q₂₂ν²)/2) sinh(q₁₂ων), and the same with cosh
for cosines: a double sum of positive terms, done in fixed-point integers. It needs no 1 - u² and holds at
|u| = 1.

Convergence is asserted at every point: each number is computed twice, with the step halved (line) or the
period stretched by 15 % and more bits (lattice), and the two must agree to `TOLERANCE` relative.

What does not exist is null. relu and abs (both neurons kinked): at |u| = 1 the second derivatives; where a
norm is zero everything but the value 0 and the derivative in the norm of the other, non-zero neuron, which
is 0. A single kinked neuron leaves G smooth at |u| = 1. If its own norm is zero the same holds as for two,
except when the other activation is odd: then E[s₁(x)|y|] = 0, G = ½ E[s₁(x) y] for relu, and all
derivatives exist. At zero norm q₁₂ cannot move alone; the derivatives are then those of the smooth
continuation, given by the expectations above.
"""
